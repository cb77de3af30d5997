"""flow.range, eye, diag, tril, triu: made of positions, which a job computes once, when it is compiled."""
from __future__ import annotations

from flowedu import ops
from flowedu.core.values import dtype as dt
from flowedu.errors import CheckError, ShapeError
from flowedu.ops.front import front

_o = ops.REGISTRY
_e = ops.elementwise
_range = range


def positions(size: int, dtype=dt.int64, start: int = 0, step: int = 1):
    """start, start + step, ... as a value of shape (size,)."""
    return _o["range"](start=start, step=step, size=size, dtype=dtype)


@front("Range")
def _interval(start, limit, delta, dtype):
    start, limit = (0, start) if limit is None else (start, limit)
    for what, n in (("start", start), ("limit", limit), ("delta", delta)):
        if type(n) is not int:
            raise CheckError(f"range: {what} is not an int", expected="Python ints", got=repr(n), fix=f"{what}=int(x)")
    if limit <= start or delta < 1:
        raise CheckError("range: the range is empty", expected="limit > start, delta of 1 or more",
                         got=f"start={start}, limit={limit}, delta={delta}", fix="flow.range(10) is 0, 1, ..., 9")
    dtype = dt.as_dtype(dtype or dt.int64, "range: dtype")
    return positions(len(_range(start, limit, delta)), dtype, start, delta)


def range(start: int, limit: int | None = None, delta: int = 1, dtype=None, name: str | None = "range"):
    """start, start + delta, ... below limit; 0, 1, ... below `start` when it stands alone. dtype: int64 unless given.

    The default name is a constant, as in OneFlow 0.4: a job with two ranges must name one of them.
    """
    return _interval(start, limit, delta, dtype, name=name)


def _below(rows: int, columns: int, diagonal: int):
    """An int8 mask (rows, columns): 1 on and below the diagonal, which lies `diagonal` places to the right."""
    return _e.greater_equal(_o["reshape"](positions(rows, start=diagonal), shape=(rows, 1)), positions(columns))


def _fill(x, fill_value):
    return _o["constant"](shape=(), value=fill_value, dtype=x.dtype)


def _check_matrix(what: str, x, diagonal) -> None:
    if x.ndim < 2:
        raise ShapeError(f"{what}: x is not a matrix", expected="two axes or more", got=str(x.shape),
                         fix="reshape it to a matrix")
    if type(diagonal) is not int:
        raise CheckError(f"{what}: diagonal is not an int", expected="0, or how far to the right", got=repr(diagonal),
                         fix="diagonal=1 is the one above the main diagonal")


@front("Tril")
def tril(x, diagonal: int = 0, fill_value: float = 0):
    """The lower triangle of each matrix (the last two axes), `fill_value` above the diagonal."""
    _check_matrix("tril", x, diagonal)
    return _e.where(_below(*x.shape[-2:], diagonal), x, _fill(x, fill_value))


@front("Triu")
def triu(x, diagonal: int = 0, fill_value: float = 0):
    """The upper triangle of each matrix (the last two axes), `fill_value` below the diagonal. (Not in OneFlow 0.4.)"""
    _check_matrix("triu", x, diagonal)
    return _e.where(_below(*x.shape[-2:], diagonal - 1), _fill(x, fill_value), x)


@front("Eye")
def eye(n: int, m: int | None = None, dtype=dt.float32):
    """The n x m matrix (n x n) with ones on the diagonal. (Not in OneFlow 0.4.)"""
    m = n if m is None else m
    same = _e.equal(_o["reshape"](positions(n), shape=(n, 1)), positions(m))
    return _o["cast"](same, dtype=dt.as_dtype(dtype, "eye: dtype"))


@front("Diag")
def diag(x, diagonal: int = 0):
    """The diagonal of a matrix, or the square matrix with x, of one axis, on its diagonal and zeros elsewhere.

    diagonal: 0, or how many places to the right (below zero: down) it lies.
    """
    right, down = max(diagonal, 0), max(-diagonal, 0)
    if x.ndim == 1:
        n = x.shape[0] + right + down
        start, stop = down * n + right, down * n + right + (x.shape[0] - 1) * (n + 1) + 1
        flat = _o["slice_grad"](x, shape=(n * n,), start=(start,), stop=(max(stop, start),), step=(n + 1,))
        return _o["reshape"](flat, shape=(n, n))
    if x.ndim != 2:
        raise ShapeError("diag: x is neither a vector nor a matrix", expected="one axis, or two", got=str(x.shape),
                         fix="take one matrix at a time")
    rows, columns = x.shape
    count = min(rows - down, columns - right)
    if count < 1:
        raise ShapeError("diag: the matrix has no such diagonal", got=f"diagonal={diagonal} of x {x.shape}",
                         expected=f"a diagonal in [{1 - rows}, {columns - 1}]", fix="diagonal=0 is the main one")
    start = down * columns + right
    return _o["slice"](_o["reshape"](x, shape=(rows * columns,)), start=(start,),
                       stop=(start + (count - 1) * (columns + 1) + 1,), step=(columns + 1,))


__all__ = ["diag", "eye", "range", "tril", "triu"]
