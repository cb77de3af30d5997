"""Size: the class of t.shape."""
from __future__ import annotations

import math


class Size(tuple):
    """A shape: a tuple of ints whose sums and slices are Sizes, with the method `numel`."""

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self)

    def __getitem__(self, index):
        result = tuple.__getitem__(self, index)
        return Size(result) if isinstance(index, slice) else result

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, n):
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"flowedu.Size({list(self)})"

    def __reduce__(self):
        return Size, (tuple(self),)
