"""flow.explain: the reason for the layout of a value, and the bytes that were moved for it."""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import Op
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.distributed.boxing import heard
from flowedu.errors import CallError
from flowedu.show.choice import size


def explain(x, *args, **kwargs) -> None:
    """Print which signatures there were, what each would have moved, which one won and because of what.

    Args:
        x: a global tensor: the op that made it. A function or an op: it is called with the other arguments, and every op
            in it is explained. A compiled nn.Graph: a table of all its ops, with the bytes of a step.

        flow.explain(x @ w)
        flow.explain(model, x)
        flow.explain(graph)
    """
    print(explanation(x, *args, **kwargs))


def explanation(x, *args, **kwargs) -> str:
    """The text that flow.explain prints."""
    if isinstance(x, Tensor):
        return _tensor(x)
    if callable(getattr(x, "explain", None)):
        return x.explain()
    if isinstance(x, (Op, Callable)):
        return _calls(x, args, kwargs)
    raise CallError("explain: not something that is spread over devices", expected="a global tensor, a function with its "
                    "arguments, or a compiled nn.Graph", got=type(x).__name__, fix="flow.explain(flow.matmul, x, w)")


def _tensor(x: Tensor) -> str:
    if x.global_layout is None:
        return "a local tensor: it lies on one device, and nothing was chosen"
    origin = None if x.rare is None or x.rare.parts is None else x.rare.parts.origin
    if origin is None or isinstance(origin, Route) and not origin.bytes:
        return f"{x.global_layout.layout}: as it was asked for (made so, or to_global), or it lies on one device"
    if isinstance(origin, Route):
        kinds = {"P": "partial sums", "Pmax": "partial maxima", "Pmin": "partial minima"}
        of = next((f" of {kinds[s]}" for s in origin.src.sbp if s in kinds), "")
        asked = "the layout that to_global asked for, or, of a gradient, that of its parameter"
        return f"{origin.describe()}\n because: {origin.name}{of} brings the value to {asked}"
    return origin.explain()


def _calls(f, args: tuple, kwargs: dict) -> str:
    with heard() as choices:
        f(*args, **kwargs)
    if not choices:
        return "no global tensor was computed with: nothing was chosen"
    total = sum(c.bytes for c in choices)
    said = [c.explain() for c in choices]
    return "\n".join([*said, f"{len(choices)} ops, {size(total)} moved between devices"] if len(said) > 1 else said)
