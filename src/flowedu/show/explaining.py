"""flow.explain: the reason for the layout of a value, and the bytes moved for it."""
from __future__ import annotations

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import Op
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.distributed.boxing import heard
from flowedu.errors import CallError
from flowedu.show.choice import size


def explain(x, *args, **kwargs) -> None:
    """Print the candidate signatures, the bytes that each would move, the choice, and the reason for it.

    Args:
        x: a global tensor (explains the op that computed it), a function or an op (calls it with the other
            arguments and explains every op in it), or a compiled nn.Graph (prints a table of its ops with the
            bytes per step).

        flow.explain(x @ w)
        flow.explain(model, x)
        flow.explain(graph)
    """
    print(explanation(x, *args, **kwargs))


def explanation(x, *args, **kwargs) -> str:
    """Return the text that flow.explain prints."""
    if isinstance(x, Tensor):
        return _tensor(x)
    if callable(getattr(x, "explain", None)):
        return x.explain()
    if isinstance(x, Op) or callable(x):
        return _calls(x, args, kwargs)
    raise CallError("explain: not something that is spread over devices",
                    expected="a global tensor, a function with its arguments, or a compiled nn.Graph",
                    got=type(x).__name__, fix="flow.explain(flow.matmul, x, w)")


def _tensor(x: Tensor) -> str:
    if x.global_layout is None:
        return "a local tensor: it lies on one device, and nothing was chosen"
    origin = None if x.rare is None or x.rare.parts is None else x.rare.parts.origin
    if origin is None or isinstance(origin, Route) and not origin.bytes:
        return (f"{x.global_layout.layout}: as it was asked for (made so, or to_global), or it lies on one "
                f"device")
    if isinstance(origin, Route):
        kinds = {"P": "partial sums", "Pmax": "partial maxima", "Pmin": "partial minima"}
        of = next((f" of {kinds[s]}" for s in origin.src.sbp if s in kinds), "")
        target = "the layout that to_global asked for, or, of a gradient, that of its parameter"
        return f"{origin.describe()}\n because: {origin.name}{of} brings the value to {target}"
    return origin.explain()


def _calls(f, args: tuple, kwargs: dict) -> str:
    with heard() as choices:
        f(*args, **kwargs)
    if not choices:
        return "no global tensor was computed with: nothing was chosen"
    total = sum(c.bytes for c in choices)
    texts = [c.explain() for c in choices]
    return "\n".join([*texts, f"{len(choices)} ops, {size(total)} moved between devices"] if len(texts) > 1
                     else texts)
