"""Wrong values for sbp: the fix names an axis only where the value does."""
import pytest

import flowedu as flow
from flowedu.errors import DTypeError


@pytest.mark.parametrize("value, fix", [
    ("S0", "flow.sbp.split(0)"), ("S(1)", "flow.sbp.split(1)"), ("split(1)", "flow.sbp.split(1)"),
    (1, "flow.sbp.split(1)"),
    (" s 1 ", "flow.sbp.split(1)"), ("B", "flow.sbp.broadcast"), ("partial_sum", "flow.sbp.partial_sum"),
    *((v, "flow.sbp.split(0)") for v in (flow.sbp.split, flow.sbp, object(), 1.5, -1, 10**9, True, "", "x2y3",
                                         [], {1: 2},
                                         lambda x: x, flow.ones(3), "2026-11-28", [flow.sbp.split, 3]))])
def test_the_fix_for_a_wrong_sbp_can_be_pasted(value, fix):
    with pytest.raises(DTypeError, match="sbp parameter must be type of") as caught:
        flow.ones(4, 4, placement=flow.placement("cpu", [0]), sbp=value)
    assert caught.value.fix == fix
    flow.ones(4, 4, placement=flow.placement("cpu", [0]), sbp=eval(fix))
