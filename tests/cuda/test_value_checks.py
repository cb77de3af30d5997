"""A GPU refuses the same values as the CPU, eagerly and in graphs, when the program synchronizes."""
import pytest

import flowedu as flow
from flowedu.cuda.launch import fault
from flowedu.errors import FlowError, KernelError
from laws.test_value_checks import CHECKED, DISTRIBUTIONS, Graph, refusal, to_tensors

CASES = {**CHECKED, **DISTRIBUTIONS}
MODES = {"eager": lambda f: f, "graph": Graph}


def call_on_cuda(f, arguments, mode):
    out = MODES[mode](f)(*[x.cuda() for x in to_tensors(arguments)])
    flow.cuda.synchronize()
    return out.cpu()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_a_gpu_refuses_the_same_values(name, mode):
    f, good, *bad = CASES[name]
    call_on_cuda(f, good, mode)
    for arguments in bad:
        want = refusal("eager", f, arguments)
        with pytest.raises(FlowError) as caught:
            call_on_cuda(f, arguments, mode)
        if not isinstance(want, KernelError):
            assert (type(caught.value), caught.value.problem) == (type(want), want.problem)
        fault()                          # the report of a second kernel of the call
