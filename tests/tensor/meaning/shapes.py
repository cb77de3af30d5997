"""Reference for functions that move elements: shapes, views (as NumPy views), joining, splitting,
triangles.
"""
import itertools

import numpy as np

from .kinds import T, as_kind, result, wide


def ints(args) -> tuple:
    """Return sizes or axes that were passed one by one or as one tuple."""
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args


def moves_elements(f):
    """Wrap f(array, ...) as a function of tensors that keeps the dtype."""
    return lambda x, *args, **kwargs: T(f(x.a, *args, **kwargs), x.kind)


def view(a, *shape):
    """Reshape without copying."""
    b = a.view()
    b.shape = ints(shape)
    return b


def flatten(a, start_dim=0, end_dim=-1):
    if not a.ndim:
        return a.reshape(1)
    end = end_dim % a.ndim
    return a.reshape(*a.shape[:start_dim], -1, *a.shape[end + 1:])


def unflatten(a, dim, sizes):
    dim %= a.ndim
    return a.reshape(*a.shape[:dim], *sizes, *a.shape[dim + 1:])


def squeeze(a, dim=None):
    dims = range(a.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    return a.squeeze(tuple(d for d in dims if a.shape[d] == 1))


def expand(a, *shape):
    shape = ints(shape)
    old = (1,) * (len(shape) - a.ndim) + a.shape
    return np.broadcast_to(a, [o if s == -1 else s for s, o in zip(shape, old)])


def repeat(a, *times):
    return np.tile(a, ints(times))


def tile(a, *times):
    return np.tile(a, ints(times))


def narrow(a, dim, start, length):
    start = start % a.shape[dim]
    return a[(slice(None),) * (dim % a.ndim) + (slice(start, start + length),)]


def select(a, dim, index):
    return a[(slice(None),) * (dim % a.ndim) + (index,)]


def unfold(a, dim, size, step):
    windows = np.lib.stride_tricks.sliding_window_view(a, size, dim, writeable=True)
    return windows[(slice(None),) * dim + (slice(None, None, step),)]


def as_strided(a, size, stride, storage_offset=0):
    return np.lib.stride_tricks.as_strided(a.reshape(-1)[storage_offset:], size,
                                           [s * a.itemsize for s in stride])


def diag_embed(a, offset=0, dim1=-2, dim2=-1):
    n = a.shape[-1] + abs(offset)
    out = np.zeros((*a.shape[:-1], n, n), a.dtype)
    k = np.arange(a.shape[-1])
    out[..., k + max(-offset, 0), k + max(offset, 0)] = a
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def roll(a, shifts, dims=None):
    return np.roll(a, shifts, dims)


def select_scatter(a, source, dim, index):
    out = a.copy()
    out[(slice(None),) * dim + (index,)] = source.a
    return out


def slice_scatter(a, source, dim=0, start=None, end=None, step=1):
    out = a.copy()
    out[(slice(None),) * dim + (slice(start, end, step),)] = source.a
    return out


def pad(a, sizes, mode="constant", value=0.0):
    """Pad by sizes: (left, right) of the last axis, then of the one before, ..."""
    widths = [(0, 0)] * a.ndim
    for k in range(len(sizes) // 2):
        widths[a.ndim - 1 - k] = (sizes[2 * k], sizes[2 * k + 1])
    cut = tuple(slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi), n in zip(widths, a.shape))
    grown = [(max(lo, 0), max(hi, 0)) for lo, hi in widths]
    if mode == "constant":
        return np.pad(a[cut], grown, constant_values=value)
    return np.pad(a[cut], grown, {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])


def repeat_interleave(x, repeats=None, dim=None):
    if repeats is None:
        return T(np.repeat(np.arange(x.a.size), x.a))
    return T(np.repeat(x.a, repeats.a if isinstance(repeats, T) else repeats, dim), x.kind)


def take_along_dim(x, indices, dim=None):
    if dim is None:
        return T(x.a.ravel()[indices.a])
    return T(np.take_along_axis(x.a, np.broadcast_to(indices.a, [
        n if d == dim else max(n, m) for d, (n, m) in enumerate(zip(indices.shape, x.shape))]), dim), x.kind)


MOVED = {
    "reshape": lambda a, *s: a.reshape(ints(s)), "view": view, "flatten": flatten, "ravel": flatten,
    "unflatten": unflatten,
    "squeeze": squeeze, "unsqueeze": np.expand_dims, "transpose": np.swapaxes, "swapaxes": np.swapaxes,
    "swapdims": np.swapaxes, "permute": lambda a, *d: a.transpose(ints(d)), "movedim": np.moveaxis,
    "moveaxis": np.moveaxis,
    "t": lambda a: a.T, "adjoint": lambda a: np.swapaxes(a, -1, -2), "expand": expand, "broadcast_to": expand,
    "tile": tile,
    "repeat": repeat, "narrow": narrow, "select": select, "unfold": unfold, "as_strided": as_strided,
    "diagonal": lambda a, offset=0, dim1=0, dim2=1: np.diagonal(a, offset, dim1, dim2), "diag": np.diag,
    "diagflat": np.diagflat, "diag_embed": diag_embed, "flip": lambda a, dims: np.flip(a, dims),
    "fliplr": np.fliplr,
    "flipud": np.flipud, "roll": roll, "rot90": lambda a, k=1, dims=(0, 1): np.rot90(a, k, dims),
    "tril": np.tril, "triu": np.triu, "contiguous": np.copy,
    "expand_as": lambda a, b: np.broadcast_to(a, b.shape), "reshape_as": lambda a, b: a.reshape(b.shape),
    "view_as": lambda a, b: a.reshape(b.shape), "select_scatter": select_scatter,
    "slice_scatter": slice_scatter, "pad": pad,
    "atleast_1d": np.atleast_1d, "atleast_2d": np.atleast_2d, "atleast_3d": np.atleast_3d,
}
FUNCTIONS = {n: moves_elements(f) for n, f in MOVED.items()}


def joined(f):
    """Wrap f(list of arrays, ...) as a function of a list of tensors, in their common dtype."""
    return lambda xs, *args: as_kind(f([x.a for x in xs], *args), result(*xs))


FUNCTIONS |= {"cat": joined(np.concatenate), "concat": joined(np.concatenate),
              "concatenate": joined(np.concatenate),
              "stack": joined(np.stack), "hstack": joined(np.hstack), "vstack": joined(np.vstack),
              "row_stack": joined(np.vstack), "dstack": joined(np.dstack),
              "column_stack": joined(np.column_stack)}


def parts(x, places, dim):
    return tuple(T(a, x.kind) for a in np.split(x.a, places, dim))


def split(x, size, dim=0):
    sizes = size if isinstance(size, list) else [size] * -(-x.shape[dim] // size)
    return parts(x, np.cumsum(sizes)[:-1], dim)


def chunk(x, chunks, dim=0):
    return split(x, -(-x.shape[dim] // chunks), dim)


def tensor_split(x, where, dim=0):
    return tuple(T(a, x.kind) for a in np.array_split(x.a, where if isinstance(where, int) else list(where),
                                                      dim))


def evenly(axis):
    return lambda x, where: parts(x, where if isinstance(where, int) else list(where),
                                  min(axis, x.a.ndim - 1))


def unbind(x, dim=0):
    return tuple(T(select(x.a, dim, k), x.kind) for k in range(x.shape[dim]))


def meshgrid(*xs, indexing="ij"):
    return tuple(T(a) for a in np.meshgrid(*[x.a for x in xs], indexing=indexing))


def broadcast_tensors(*xs):
    return tuple(T(a) for a in np.broadcast_arrays(*[x.a for x in xs]))


def broadcast_shapes(*shapes):
    return np.broadcast_shapes(*shapes)


def vander(x, N=None, increasing=False):
    return T(np.vander(x.a.astype(wide(x.kind)), N, increasing))


def cartesian_prod(*xs):
    return T(np.array(list(itertools.product(*[x.a for x in xs])))) if len(xs) > 1 else xs[0]


def combinations(x, r=2, with_replacement=False):
    every = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return T(np.array(list(every(x.a, r))))


def block_diag(*xs):
    xs = [T(np.atleast_2d(x.a)) for x in xs]
    out, row, column = np.zeros(np.sum([x.shape for x in xs], 0)), 0, 0
    for x in xs:
        out[row:row + x.shape[0], column:column + x.shape[1]] = x.a
        row, column = row + x.shape[0], column + x.shape[1]
    return T(out)


def tril_indices(rows, columns, offset=0):
    return T(np.stack(np.tril_indices(rows, offset, columns)))


def triu_indices(rows, columns, offset=0):
    return T(np.stack(np.triu_indices(rows, offset, columns)))


FUNCTIONS |= {"hsplit": evenly(1), "vsplit": evenly(0), "dsplit": evenly(2)}
FUNCTIONS |= {f.__name__: f for f in (vander, repeat_interleave, take_along_dim, split, chunk, tensor_split,
                                      unbind,
                                      meshgrid, broadcast_tensors, broadcast_shapes, cartesian_prod,
                                      combinations, block_diag, tril_indices, triu_indices)}
