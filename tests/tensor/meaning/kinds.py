"""Tables of result dtypes, and an array class that follows them.

A `T` is a NumPy array with the operators, attributes, and methods of a tensor. Its functions define the
results of flowedu: they compute in double precision or int64, and round or wrap once, at the end. Operands
are first converted to the common dtype.
"""
import builtins

import numpy as np

SHORT = dict(b="bool", u1="uint8", i1="int8", i2="int16", i4="int32", i8="int64", h="float16", bf="bfloat16",
             f="float32", d="float64")
NAMES = list(SHORT.values())
TWO_TENSORS = """
      b   u1  i1  i2  i4  i8  h   bf  f   d
b     b   u1  i1  i2  i4  i8  h   bf  f   d
u1    u1  u1  i2  i2  i4  i8  h   bf  f   d
i1    i1  i2  i1  i2  i4  i8  h   bf  f   d
i2    i2  i2  i2  i2  i4  i8  h   bf  f   d
i4    i4  i4  i4  i4  i4  i8  h   bf  f   d
i8    i8  i8  i8  i8  i8  i8  h   bf  f   d
h     h   h   h   h   h   h   h   f   f   d
bf    bf  bf  bf  bf  bf  bf  f   bf  f   d
f     f   f   f   f   f   f   f   f   f   d
d     d   d   d   d   d   d   d   d   d   d"""
AND_A_NUMBER = """
      b   u1  i1  i2  i4  i8  h   bf  f   d
bool  b   u1  i1  i2  i4  i8  h   bf  f   d
int   i8  u1  i1  i2  i4  i8  h   bf  f   d
float f   f   f   f   f   f   h   bf  f   d"""


def table(text: str) -> dict:
    """Return {(row, column): entry} of a table, with full dtype names."""
    head, *rows = [line.split() for line in text.strip().splitlines()]

    def long(s):
        return SHORT.get(s, s)

    return {(long(row[0]), long(c)): long(x) for row in rows for c, x in zip(head, row[1:])}


PAIRS, NUMBERS = table(TWO_TENSORS), table(AND_A_NUMBER)


def category(kind: str) -> int:
    return 2 if "float" in kind else 0 if kind == "bool" else 1


def result(*operands) -> str:
    """Return the dtype of an operation on tensors and numbers: a 0-dim tensor counts only when its category
    is higher.
    """
    arrays = [x.kind for x in operands if isinstance(x, T) and x.ndim]
    zeros = [x.kind for x in operands if isinstance(x, T) and not x.ndim]
    numbers = [x for x in operands if not isinstance(x, T)]

    def joined(kinds):
        found = kinds[0]
        for k in kinds[1:]:
            found = PAIRS[found, k]
        return found

    if not arrays and not zeros:
        return NUMBERS[max((type(x).__name__ for x in numbers), key=["bool", "int", "float"].index), "bool"]
    kind = joined(arrays or zeros)
    if arrays and zeros and category(joined(zeros)) > category(kind):
        kind = PAIRS[kind, joined(zeros)]
    for x in numbers:
        kind = NUMBERS[type(x).__name__, kind]
    return kind


def wide(kind: str):
    return [np.bool_, np.int64, np.float64][category(kind)]


def bfloat16(a):
    """Round float32 values to 8 bits of mantissa, ties to even."""
    bits = np.asarray(a, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32)
    return np.where(np.isnan(a), np.float32(np.nan), rounded.view(np.float32)).astype(np.float32)


def as_kind(a, kind: str) -> "T":
    """Convert an array to a tensor of a dtype: integers wrap, floats lose their fraction."""
    a = np.asarray(a)
    if kind == "bfloat16":
        return T(bfloat16(a), kind)
    if category(kind) == 1 and a.dtype.kind == "f":
        a = np.trunc(a).astype(np.int64)
    return T(a.astype(kind, copy=False))


def operate(f, *operands, kind: str | None = None, out: str | None = None) -> "T":
    """Apply f to the operands' arrays in their common dtype (or in `kind`); the result has that dtype or
    `out`.
    """
    kind = kind or result(*operands)
    arrays = [(x if isinstance(x, T) else as_kind(x, kind)).a.astype(wide(kind)) for x in operands]
    with np.errstate(all="ignore"):
        return as_kind(f(*arrays), out or kind)


def floating(kind: str) -> str:
    """Return the result dtype of a float function for this dtype."""
    return kind if category(kind) == 2 else "float32"


def real(f, *operands) -> "T":
    """Call operate with integers as float32."""
    return operate(f, *operands, kind=floating(result(*operands)))


class T:
    """Reference tensor: an array and the name of its dtype."""

    functions: dict = {}  # name: function behind x.name(...); filled by meaning/__init__.py

    def __init__(self, a, kind: str | None = None):
        self.a = np.asarray(a)
        self.kind = kind or self.a.dtype.name

    ndim = property(lambda self: self.a.ndim)
    shape = property(lambda self: self.a.shape)
    T = property(lambda self: T(self.a.T, self.kind))
    mT = property(lambda self: T(np.swapaxes(self.a, -1, -2), self.kind))

    def __getattr__(self, name):
        if name not in T.functions:
            raise AttributeError(name)
        return lambda *args, **kwargs: T.functions[name](self, *args, **kwargs)

    def __index__(self):
        return int(self.a)

    def __getitem__(self, index):
        a, rest = take_basic_indices(self.a, plain(index))
        return T(a[rest], self.kind)

    def __setitem__(self, index, value):
        a, rest = take_basic_indices(self.a, plain(index))
        a[rest] = as_kind(value.a if isinstance(value, T) else value, self.kind).a


def take_basic_indices(a, index):
    """Return (view, rest of the index). Integers are applied first, so that only lists and masks can move
    axes.
    """
    if not isinstance(index, tuple) or not any(isinstance(i, (np.ndarray, builtins.bool)) for i in index):
        return a, index
    index = spelled_out(index, a.ndim)
    numbers = tuple(i if isinstance(i, int) and not isinstance(i, builtins.bool) else slice(None)
                    if i is not Ellipsis
                    else i for i in index if i is not None)
    if any(isinstance(i, np.ndarray) and i.dtype == np.bool_ and i.ndim > 1 for i in index):
        return a, index  # a mask of several axes: no line combines it with other indices
    return a[numbers], tuple(i for i in index if not isinstance(i, int) or isinstance(i, builtins.bool))


def spelled_out(index, ndim):
    """Replace the ellipsis by slices: NumPy treats an empty ellipsis between two lists as a separator,
    PyTorch does not.
    """
    took = [0 if i is None or i is Ellipsis or isinstance(i, builtins.bool) else i.ndim
            if isinstance(i, np.ndarray) and
            i.dtype == np.bool_ else 1 for i in index]
    return tuple(j for i in index for j in ([slice(None)] * (ndim - builtins.sum(took)) if i is Ellipsis
                                            else [i]))


def plain(index):
    """Convert an index for NumPy: uint8 masks to bools, lists and tensors to arrays."""
    if isinstance(index, tuple):
        return tuple(map(plain, index))
    if isinstance(index, T):
        return index.a.astype(builtins.bool) if index.kind == "uint8" else index.a
    if isinstance(index, list):
        return np.array(index, dtype=None if index else np.int64)
    return index
