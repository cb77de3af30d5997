"""distribute_hint: the identity op with a requested layout on devices."""
from __future__ import annotations

from flowedu.core.graph.passes import SAME
from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Laws, Meaning, Split, View
from flowedu.core.sbp.sbp import is_sbp, split_axis
from flowedu.core.values.place import Place
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError
from flowedu.ops.types import AnyTensor


def _check(x: Spec, sbp: str | tuple[str, ...] | None, grad_sbp: str | tuple[str, ...] | None) -> None:
    for name, value in (("sbp", sbp), ("grad_sbp", grad_sbp)):
        if value is None:
            continue
        for s in value if isinstance(value, tuple) else (value,):
            if not is_sbp(s):
                raise ArgumentError(f"distribute_hint: {name} is not a layout",
                                    expected='"B", "P", "S0", "S1" ... or None',
                                    got=repr(s), fix="flow.distribute.split(0).sbp is S0")
            if s[0] == "S" and split_axis(s) >= x.ndim:
                raise ArgumentError(f"distribute_hint: {name} splits an axis that x does not have", got=s,
                                    expected=f"an axis of x {x.shape}", fix="count axes from 0")


def _back(dy: AnyTensor, sbp: str | tuple[str, ...] | None, grad_sbp: str | tuple[str, ...] | None,
          forced: bool, place: Place | None, grad_place: Place | None, restore: str | None) -> AnyTensor:
    if restore is not None and sbp is not None:
        return distribute_hint(dy, sbp=None, forced=forced, restore=restore)
    if grad_sbp is None and place is None:
        return dy
    return distribute_hint(dy, sbp=grad_sbp, grad_sbp=sbp, forced=forced, place=grad_place, grad_place=place)


distribute_hint = define(
    "distribute_hint(x, *, sbp, grad_sbp=None, forced=False, place=None, grad_place=None, restore=None) -> y",
    Meaning(lambda x: "{0}->{0}".format(axes.same(x.ndim)), lambda x: x.copy(), check=_check),
    View(lambda strides: (strides, 0)), Split(linear=["x"], rising=["x"]),
    Laws([dict(shapes=[(6, 12)], sbp="S0"), dict(shapes=[(6, 12)], sbp="B", grad_sbp="S1", forced=True)],
         float_only=False),
    grad={"x": _back},
    doc="x. Its readers take it in the layout `sbp` (forced: it is in that layout from here on), and its "
    "gradient is taken in `grad_sbp`. Any layout may come in and goes out: the wish is for "
    "distributed/graph/infer.py to fulfil, on several devices. "
        "sbp: one text, or one for each axis of a grid of devices. place: where it is from here on "
        "(dist.sbp.Place); its gradient goes to grad_place. restore: a name by which a forced hint knows the "
    "one of its gradient, which has no sbp: that goes to where x was.")
SAME.add(distribute_hint)            # the pass `simplify`: a hint is its input
