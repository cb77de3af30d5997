"""flow.sort, flow.argsort, math.top_k, math.in_top_k: positions and order, for blobs and tensors (OneFlow 0.4)."""
from __future__ import annotations

from flowedu import ops
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError, DTypeError, ShapeError
from flowedu.oneflow04.axes import normal_axis
from flowedu.ops.front import front

_o = ops.REGISTRY
_e = ops.elementwise


def swapped(x, a: int, b: int):
    """x with two axes exchanged; x itself when they are one."""
    perm = list(range(x.ndim))
    perm[a], perm[b] = perm[b], perm[a]
    return x if a == b else _o["transpose"](x, perm=tuple(perm))


def _positions(what: str, x, axis, direction: str):
    """(axis from the front, the positions that sort x along its last axis when `axis` is swapped with it)."""
    if isinstance(axis, str):                       # before 0.4 the second argument was the direction
        axis, direction = -1, axis
    if direction not in ("ASCENDING", "DESCENDING"):
        raise CheckError(f"{what}: unknown direction", expected='"ASCENDING" or "DESCENDING"', got=repr(direction),
                         fix=f'{what}(x, direction="DESCENDING") puts the largest first')
    axis = normal_axis(axis, x.ndim, what)
    return axis, _o["argsort"](swapped(x, axis, x.ndim - 1), descending=direction == "DESCENDING")


@front("ArgSort")
def argsort(input, axis: int = -1, direction: str = "ASCENDING"):
    """The positions, int32, that sort `input` along `axis`. Equal elements stay in their order; a NaN is the largest."""
    axis, at = _positions("argsort", input, axis, direction)
    return swapped(at, axis, input.ndim - 1)


@front("Sort")
def sort(input, axis: int = -1, direction: str = "ASCENDING"):
    """`input` sorted along `axis`, ASCENDING or DESCENDING. Its gradient goes back to where each element came from."""
    axis, at = _positions("sort", input, axis, direction)
    last = input.ndim - 1
    return swapped(_o["dim_gather"](swapped(input, axis, last), at, axis=last), axis, last)


@front("TopK")
def top_k(input, axis: int = -1, k: int = 1, sorted: bool = True):
    """The positions, int32, of the k largest elements along `axis`, the largest first (whatever `sorted` says); all of
    them where the axis is shorter than k. Of equal elements the first one comes first. Not the elements: flow.dim_gather
    gets them."""
    if not isinstance(k, int) or k < 1:
        raise ArgumentError("math.top_k: k is not a number of elements", expected="an int of 1 or more", got=repr(k),
                            fix="math.top_k(x, k=5)")
    axis, last = normal_axis(axis, input.ndim, "math.top_k"), input.ndim - 1
    return swapped(_o["top_k"](swapped(input, axis, last), k=min(k, input.shape[axis])), axis, last)


@front("InTopK")
def in_top_k(targets, predictions, k: int):
    """int8 (n,): whether class targets[i] is among the k largest of predictions[i]; ties at the border count as inside.

    A NaN counts as larger than everything: it never makes a target look good.
    targets: int32 or int64 (n,); predictions: (n, classes).
    """
    if predictions.ndim != 2 or targets.shape != predictions.shape[:1]:
        raise ShapeError("math.in_top_k: targets and predictions do not fit", got=f"targets {targets.shape}, predictions "
                         f"{predictions.shape}", expected="targets (n,), predictions (n, classes), in this order",
                         fix="in_top_k(labels, logits, k=5)")
    if targets.dtype not in (dt.int32, dt.int64):
        raise DTypeError("math.in_top_k: targets have the wrong element type", expected="int32 or int64",
                         got=targets.dtype.name, fix="flow.cast(targets, flow.int32)")
    own = _o["dim_gather"](predictions, _o["reshape"](targets, shape=(*targets.shape, 1)), axis=1)
    not_larger = _o["sum"](_o["cast"](_e.less_equal(predictions, own), dtype=dt.int32), axis=(1,))
    return _e.greater(not_larger, predictions.shape[1] - k)


__all__ = ["argsort", "in_top_k", "sort", "top_k"]
