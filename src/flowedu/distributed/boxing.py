"""flow.boxing: costs of converting a value between layouts, and switches for the choice of layouts.

r = flow.boxing.route(x, sbp=flow.sbp.broadcast)      # the conversion of x.to_global(sbp=...)
print(r.bytes, r.describe()); r.draw("boxing.svg")
with flow.boxing.strict(): ...                         # no implicit boxing
with flow.boxing.rule("oneflow"): ...                  # choose signatures as OneFlow 0.9 does
"""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.sbp.boxing import Route
from flowedu.core.sbp.boxing import route as _route
from flowedu.core.sbp.tensor.global_layout import make_layout
from flowedu.core.values.dtype import as_dtype, float32
from flowedu.core.values.spec import Spec
from flowedu.core.values.thread_state import during
from flowedu.distributed.oneflow_rule import RULES
from flowedu.errors import ArgumentError

__all__ = ["Route", "route", "rule", "strict"]

attach(Route, {"_repr_svg_": lambda self: self.draw()})            # displayed by notebooks


def route(x: Tensor | Sequence[int], placement=None, sbp=None, *, src=None, dtype=float32) -> Route:
    """Return the cheapest route of a value to another placement and sbp. No data is moved.

    Args:
        x: a global tensor, or the logical shape of one.
        placement: the placement of the destination; None keeps the current one.
        sbp: the sbp of the destination; None keeps the current one.
        src: the current (placement, sbp), if x is a shape.
        dtype: the dtype of the value, if x is a shape.

    Returns:
        A Route, a sequence of hops. `.bytes` is the number of bytes sent over the network. `.name` and
        `.describe()` are texts, and `.hops` are the hops. `.messages()` returns [(from, to, bytes), ...].
        `.draw(path)` writes a diagram (SVG) of the data on every device before, between, and after the hops.
    """
    if isinstance(x, Tensor):
        if x.global_layout is None:
            raise ArgumentError("boxing.route: x is a local tensor", expected="a global tensor or a shape",
                                got="a local one", fix="pass its logical shape, and src=(placement, sbp)")
        spec, at = x.spec, x.global_layout
    else:
        if src is None:
            raise ArgumentError("boxing.route: where is it now?",
                                expected="src=(placement, sbp) with a shape",
                                got="src=None",
                                fix="src=(flow.placement(\"cpu\", [0, 1]), flow.sbp.split(0))")
        spec = Spec(tuple(x), as_dtype(dtype))
        at = make_layout(*(*src, spec.shape, "boxing.route: src"))
    to = make_layout(at.placement if placement is None else placement, at.sbp if sbp is None else sbp,
                     spec.shape, "boxing.route")
    return _route(at.layout, to.layout, spec)


# ---- switches
class _Set(during):
    """A context manager that sets a field of the thread's state and returns the value."""

    def __init__(self, name: str, value):
        super().__init__(**{name: value})
        self.value = value

    def __enter__(self):
        super().__enter__()
        return self.value


def strict() -> _Set:
    """Return a context manager inside which nothing is boxed implicitly.

    An op whose inputs do not have the layouts of one of its signatures is rejected, with a list of the
    possible signatures. Use it to locate communication.
    """
    return _Set("strict", True)


def rule(name: str) -> _Set:
    """Return a context manager that selects the rule for the choice of signatures.

    Args:
        name: "bytes" moves the fewest bytes (the default). "oneflow" uses the order and prices of OneFlow
            0.9; see oneflow_rule.py for the differences.
    """
    if name not in RULES:
        raise ArgumentError(f"boxing.rule: no such rule: {name!r}", expected=" or ".join(RULES),
                            got=repr(name), fix='flow.boxing.rule("oneflow")')
    return _Set("rule", name)


def heard() -> _Set:
    """Return a context manager that records the choices of signatures. Its value is their list, in order."""
    return _Set("choice_log", [])
