"""Shards on other ranks: exchange of their shapes and dtypes when each rank contributes one.

core/sbp/tensor/shards.py calls this module where this thread does not represent all ranks.
"""
from __future__ import annotations

from typing import Any

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.eager.dispatch import GlobalLayout
from flowedu.core.eager.tensor import Tensor
from flowedu.core.sbp.names import placement
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.sbp import Layout, split_axis
from flowedu.core.sbp.tensor.interpreter import Parts
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, DTypeError, user_line
from flowedu.errors.layouts import axis_error


def logical_spec(x: Tensor, global_layout: GlobalLayout, check: bool) -> Spec:
    """Return shape and dtype of the value whose parts the ranks provide.

    With `check`, compare their dtypes.
    """
    layout = global_layout.layout
    shapes, dtype = _specs_of_all(x, global_layout.placement, check)
    found = shapes
    # Axis by axis of the grid, the innermost first.
    for s, n in zip(reversed(layout.sbp), reversed(layout.hierarchy)):
        groups = [shapes[i:i + n] for i in range(0, len(shapes), n)]
        shapes = [_joined_shape(g, s) for g in groups]
    _check_balanced(layout, shapes[0], found)
    return Spec(shapes[0], dtype)


def _specs_of_all(x: Tensor, p: placement, check: bool) -> tuple[list[tuple[int, ...]], dt.dtype]:
    """Return the local shapes on the placement's devices, and the dtype of the first of them.

    This dtype also applies to other devices. Every rank of the world must call this.
    """
    engine: Any = current()                    # its communicators have all operations of flow.comm
    mine = [list(x._sizes()), x.dtype.name]
    all_meta = engine.comm(engine.rank).all_gather_object(mine)
    on = [all_meta[d] for d in p.devices]
    types = sorted({m[1] for m in on})
    if check and len(types) > 1:
        raise DTypeError("to_global: Expected all tensors on each rank to be the same dtype, but found at "
                         "least two "
                         f"dtypes, {' and '.join(types)}!", expected="one dtype on all ranks",
                         fix="x.to(flow.float32)",
                         got=", ".join(f"rank {d}: {m[1]}" for d, m in zip(p.devices, on)))
    return [tuple(m[0]) for m in on], dt.as_dtype(getattr(dt, on[0][1], on[0][1]))


def _joined_shape(group: list[tuple[int, ...]], s: str) -> tuple[int, ...]:
    axis, first = split_axis(s), group[0]
    if axis is not None and axis >= len(first):
        raise axis_error("to_global", axis, first, f"an axis of the local shape {first}")
    rest = [tuple(n for d, n in enumerate(shape) if d != axis) for shape in group]
    if any(r != rest[0] or len(shape) != len(first) for r, shape in zip(rest, group)):
        raise ArgumentError("to_global: Expected input of each rank must have the same size, but got at "
                            "least two size, "
                            + " and ".join(str(s) for s in dict.fromkeys(group)), got=str(group),
                            expected="equal shapes" +
                            (f" except for axis {axis}" if axis is not None else ""),
                            fix="look at x.shape on every rank")
    if axis is None:
        return first
    return tuple(sum(shape[d] for shape in group) if d == axis else n for d, n in enumerate(first))


def _check_balanced(layout: Layout, shape: tuple[int, ...], shapes: list[tuple[int, ...]]) -> None:
    want = [layout.local_shape(shape, i) for i in range(layout.k)]
    if [tuple(w) for w in want] != [tuple(s) for s in shapes]:
        axis = next(d for w, s in zip(want, shapes) for d in range(len(w)) if w[d] != s[d])
        raise ArgumentError(f"to_global: Sizes of tensors in dimension {axis} must be same or match "
                            f"balanced split distribution", expected=f"shards {', '.join(map(str, want))}",
                            got=", ".join(map(str, shapes)),
                            fix="move rows between the ranks: the first have one more")


def of_first(layout: Layout, parts: Parts) -> Parts:
    """Replace all parts along the broadcast axes of the grid by the first one."""
    if len(parts) == layout.k:
        return parts
    engine: Any = current()
    out = Parts(parts)
    for rank in parts:
        at = layout.coords(layout.devices.index(rank))
        group = tuple(d for i, d in enumerate(layout.devices)
                      if all(a == b for a, b, s in zip(layout.coords(i), at, layout.sbp) if s != "B"))
        first = group[0]
        mine = parts[rank].peek() if rank == first else None
        got = engine.comm(rank).broadcast(mine, first, tuple(sorted(group)), f"to_global at {user_line()}")
        out[rank] = parts[rank] if rank == first else from_numpy(got)
    return out
