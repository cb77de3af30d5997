"""flow.channels_last and the other memory formats: the order of a tensor's elements in memory.

A format consists only of strides: a channels-last tensor of shape (N, C, H, W) is a view of a contiguous one
of (N, H, W, C). Every function accepts it like any view; results are contiguous unless a format is requested.
"""
from __future__ import annotations

from flowedu.core.eager.arrays import copy_of, make_contiguous
from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.ops.define import REGISTRY
from flowedu.errors import CallError, ShapeError

_TRANSPOSE = REGISTRY["transpose"]


class memory_format:
    """One of flow.contiguous_format, channels_last, channels_last_3d and preserve_format; there are no others.

    Attributes: order, the axes from the one that varies slowest to the one that varies fastest, or None.
    """

    __slots__ = ("_name", "order")

    def __init__(self, name: str, order: tuple[int, ...] | None = None):
        self._name, self.order = name, order

    def __repr__(self) -> str:
        return f"flowedu.{self._name}"

    def __reduce__(self) -> str:                             # copies are the same object
        return self._name


contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last = memory_format("channels_last", (0, 2, 3, 1))
channels_last_3d = memory_format("channels_last_3d", (0, 2, 3, 4, 1))


def checked(what: str, given, preserve: bool = True) -> memory_format:
    """`given`, or contiguous_format for None. Raises CallError for anything else; not `preserve`: for preserve_format."""
    if given is None:
        return contiguous_format
    if not isinstance(given, memory_format) or (given is preserve_format and not preserve):
        names = ["contiguous_format", "channels_last", "channels_last_3d", *(["preserve_format"] if preserve else [])]
        raise CallError(f"{what}: memory_format", expected=" or ".join(f"flow.{n}" for n in names), got=repr(given)[:60],
                        fix=f"{what}(..., memory_format=flow.channels_last), or leave it out")
    return given


def order_of(what: str, format: memory_format, shape: tuple, strides: tuple = ()) -> tuple[int, ...]:
    """The axes of a tensor in this format, from the slowest to the fastest. strides: of the tensor whose order
    preserve_format keeps."""
    if format is preserve_format:
        return tuple(sorted(range(len(shape)), key=lambda d: -strides[d] if shape[d] != 1 else -max(strides)))
    if format.order is None:
        return tuple(range(len(shape)))
    if len(format.order) != len(shape):
        raise ShapeError(f"{what}: required rank {len(format.order)} tensor to use {format._name} format",
                         expected=f"{len(format.order)} axes", got=f"shape {tuple(shape)}",
                         fix="leave memory_format out, or flow.contiguous_format")
    return format.order


def in_order(x: Tensor, order: tuple[int, ...]) -> Tensor:
    """The view of x with its axes in this order."""
    return x if order == tuple(range(len(order))) else _TRANSPOSE.call((x,), (order,))


def out_of_order(x: Tensor, order: tuple[int, ...]) -> Tensor:
    """The view whose axes in this order are x's."""
    return in_order(x, tuple(order.index(d) for d in range(len(order))))


def copied(x: Tensor, format: memory_format, what: str = "clone") -> Tensor:
    """A copy of x in this format; differentiable."""
    order = order_of(what, format, x.shape, x.stride())
    return out_of_order(copy_of(in_order(x, order)), order)


def is_contiguous(self, memory_format: memory_format | None = None) -> bool:
    """Whether the memory runs without gaps in the order of a format (None: row by row)."""
    if memory_format is None or memory_format is contiguous_format:
        return self._is_row_major()
    order = checked("is_contiguous", memory_format, preserve=False).order
    return len(order) == self.ndim and in_order(self, order)._is_row_major()


def contiguous(input, memory_format: memory_format | None = None):
    """x itself when its memory runs row by row (or as the format says), else a copy that does."""
    if memory_format is None:
        return make_contiguous(input)
    format = checked("contiguous", memory_format, preserve=False)
    order_of("contiguous", format, input.shape)
    return input if is_contiguous(input, format) else copied(input, format)


def clone(input, memory_format: memory_format | None = None):
    """A copy with memory of its own, row by row unless a format is given; differentiable."""
    if memory_format is None:
        return copy_of(input)
    return copied(input, checked("clone", memory_format))


def like(what: str, made: Tensor, format: memory_format | None, input: Tensor) -> Tensor:
    """`made`, a new tensor in the shape of `input`, in this format."""
    if format is None:
        return made
    order = order_of(what, checked(what, format), input.shape, input.stride())
    return out_of_order(copy_of(in_order(made, order)), order)


attach(Tensor, {"is_contiguous": is_contiguous})
