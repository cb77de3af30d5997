"""Size: the class of t.shape."""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, SupportsIndex


class Size(tuple):
    """A shape: a tuple of ints whose sums and slices are Sizes, with the method `numel`.

    Args:
        iterable: the sizes; default: (), the shape of a tensor without axes.
    """

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self)

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        result = tuple.__getitem__(self, index)
        return Size(result) if isinstance(index, slice) else result

    def __add__(self, other: Iterable) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Iterable) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, n: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"flowedu.Size({list(self)})"

    def __reduce__(self) -> tuple:
        return Size, (tuple(self),)
