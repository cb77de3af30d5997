"""flow.range, eye, diag, tril, and triu, computed from ranges of positions when a job is compiled."""
from __future__ import annotations

from flowedu import ops
from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.concat import slice_grad
from flowedu.core.ops.view import cast, constant, reshape
from flowedu.core.values import dtype as dt
from flowedu.errors import CheckError, ShapeError
from flowedu.ops.front import front
from flowedu.ops.order import range as range_op

_e = ops.elementwise
_range = range


def positions(size: int, dtype=dt.int64, start: int = 0, step: int = 1):
    """Return start, start + step, ... as a value of shape (size,)."""
    return range_op(start=start, step=step, size=size, dtype=dtype)


@front("Range")
def _interval(start, limit, delta, dtype):
    start, limit = (0, start) if limit is None else (start, limit)
    for what, n in (("start", start), ("limit", limit), ("delta", delta)):
        if type(n) is not int:
            raise CheckError(f"range: {what} is not an int", expected="Python ints", got=repr(n),
                             fix=f"{what}=int(x)")
    if limit <= start or delta < 1:
        raise CheckError("range: the range is empty", expected="limit > start, delta of 1 or more",
                         got=f"start={start}, limit={limit}, delta={delta}",
                         fix="flow.range(10) is 0, 1, ..., 9")
    dtype = dt.as_dtype(dtype or dt.int64, "range: dtype")
    return positions(len(_range(start, limit, delta)), dtype, start, delta)


def range(start: int, limit: int | None = None, delta: int = 1, dtype=None, name: str | None = "range"):
    """Return start, start + delta, ... below `limit`.

    Args:
        start: the first element. Without `limit` it is the limit, and the range starts at 0.
        limit: the end of the range, which is excluded.
        delta: the step, 1 or more.
        dtype: the dtype of the result; None is int64.
        name: the name of the op. The default is a constant, as in OneFlow 0.4: a job with two ranges must
            name one.
    """
    return _interval(start, limit, delta, dtype, name=name)


def _below(rows: int, columns: int, diagonal: int):
    """Return an int8 mask (rows, columns): 1 on and below the diagonal `diagonal` columns to the right."""
    return _e.greater_equal(reshape(positions(rows, start=diagonal), shape=(rows, 1)), positions(columns))


def _fill(x, fill_value):
    return constant(shape=(), value=fill_value, dtype=x.dtype)


def _check_matrix(what: str, x, diagonal) -> None:
    if x.ndim < 2:
        raise ShapeError(f"{what}: x is not a matrix", expected="two axes or more", got=str(x.shape),
                         fix="reshape it to a matrix")
    if type(diagonal) is not int:
        raise CheckError(f"{what}: diagonal is not an int", expected="0, or how far to the right",
                         got=repr(diagonal), fix="diagonal=1 is the one above the main diagonal")


@front("Tril")
def tril(x, diagonal: int = 0, fill_value: float = 0):
    """Return the lower triangle of each matrix.

    Args:
        x: a blob of shape (..., rows, columns).
        diagonal: the last diagonal that is kept; 1 is the first above the main diagonal.
        fill_value: the value above the diagonal.
    """
    _check_matrix("tril", x, diagonal)
    return _e.where(_below(x.shape[-2], x.shape[-1], diagonal), x, _fill(x, fill_value))


@front("Triu")
def triu(x, diagonal: int = 0, fill_value: float = 0):
    """Return the upper triangle of each matrix.

    Args:
        x: a blob of shape (..., rows, columns).
        diagonal: the first diagonal that is kept; 1 is the first above the main diagonal.
        fill_value: the value below the diagonal.

    Note:
        OneFlow 0.4 does not have this function for blobs.
    """
    _check_matrix("triu", x, diagonal)
    return _e.where(_below(x.shape[-2], x.shape[-1], diagonal - 1), _fill(x, fill_value), x)


@front("Eye")
def eye(n: int, m: int | None = None, dtype=dt.float32):
    """Return a matrix with ones on the diagonal.

    Args:
        n: the number of rows.
        m: the number of columns; None is `n`.
        dtype: the dtype of the result.

    Note:
        OneFlow 0.4 does not have this function for blobs.
    """
    m = n if m is None else m
    same = _e.equal(reshape(positions(n), shape=(n, 1)), positions(m))
    return cast(same, dtype=dt.as_dtype(dtype, "eye: dtype"))


@front("Diag")
def diag(x, diagonal: int = 0):
    """Return the diagonal of a matrix, or a square matrix with a given diagonal.

    Args:
        x: a matrix, or a vector to place on the diagonal of a matrix of zeros.
        diagonal: the offset of the diagonal in columns to the right; below 0, in rows down.
    """
    right, down = max(diagonal, 0), max(-diagonal, 0)
    if x.ndim == 1:
        n = x.shape[0] + right + down
        start, stop = down * n + right, down * n + right + (x.shape[0] - 1) * (n + 1) + 1
        flat = slice_grad(x, shape=(n * n,), start=(start,), stop=(max(stop, start),), step=(n + 1,))
        return reshape(flat, shape=(n, n))
    if x.ndim != 2:
        raise ShapeError("diag: x is neither a vector nor a matrix", expected="one axis, or two",
                         got=str(x.shape), fix="take one matrix at a time")
    rows, columns = x.shape
    count = min(rows - down, columns - right)
    if count < 1:
        raise ShapeError("diag: the matrix has no such diagonal", got=f"diagonal={diagonal} of x {x.shape}",
                         expected=f"a diagonal in [{1 - rows}, {columns - 1}]",
                         fix="diagonal=0 is the main one")
    start = down * columns + right
    return slice_op(reshape(x, shape=(rows * columns,)), start=(start,),
                    stop=(start + (count - 1) * (columns + 1) + 1,), step=(columns + 1,))


__all__ = ["diag", "eye", "range", "tril", "triu"]
