"""flow.channels_last and the other memory formats: the order of a tensor's elements in memory.

A format only determines the strides. A channels-last tensor of shape (N, C, H, W) is a view of a contiguous
tensor of shape (N, H, W, C). Every function accepts it like any other view. Results are contiguous unless a
format is requested.
"""
from __future__ import annotations

from typing import Any

from flowedu.core.eager.arrays import copy_of, make_contiguous
from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.ops import view
from flowedu.errors import CallError, ShapeError

_TRANSPOSE = view.transpose


class memory_format:
    """Order of elements in memory.

    The formats are flow.contiguous_format, channels_last, channels_last_3d, and preserve_format.

    The attribute `order` contains the axes from the slowest to the fastest varying one, or is None.

    Args:
        name: name of the format.
        order: the attribute `order`; default: None.
    """

    __slots__ = ("_name", "order")

    def __init__(self, name: str, order: tuple[int, ...] | None = None) -> None:
        self._name = name
        self.order: tuple[int, ...] | Any = order

    def __repr__(self) -> str:
        return f"flowedu.{self._name}"

    def __reduce__(self) -> str:                             # copies are the same object
        return self._name


contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last = memory_format("channels_last", (0, 2, 3, 1))
channels_last_3d = memory_format("channels_last_3d", (0, 2, 3, 4, 1))


def checked(what: str, given: object, preserve: bool = True) -> memory_format:
    """Return the format, or contiguous_format for None; raise CallError for anything else.

    `preserve=False` also rejects preserve_format.
    """
    if given is None:
        return contiguous_format
    if not isinstance(given, memory_format) or (given is preserve_format and not preserve):
        names = ["contiguous_format", "channels_last", "channels_last_3d",
                 *(["preserve_format"] if preserve else [])]
        raise CallError(f"{what}: memory_format", expected=" or ".join(f"flow.{n}" for n in names),
                        got=repr(given)[:60],
                        fix=f"{what}(..., memory_format=flow.channels_last), or leave it out")
    return given


def order_of(what: str, format: memory_format, shape: tuple, strides: tuple = ()) -> tuple[int, ...]:
    """Return the axes of a tensor in this format, from the slowest to the fastest.

    `strides` are those of the tensor whose order preserve_format keeps.
    """
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
    """Return a view of x with its axes in this order."""
    return x if order == tuple(range(len(order))) else _TRANSPOSE.call((x,), (order,))


def out_of_order(x: Tensor, order: tuple[int, ...]) -> Tensor:
    """Undo in_order; return a view y such that in_order(y, order) has the axes of x."""
    return in_order(x, tuple(order.index(d) for d in range(len(order))))


def copied(x: Tensor, format: memory_format, what: str = "clone") -> Tensor:
    """Return a differentiable copy of x in this format."""
    order = order_of(what, format, x.shape, x.stride())
    return out_of_order(copy_of(in_order(x, order)), order)


def is_contiguous(self: Tensor, memory_format: memory_format | None = None) -> bool:
    """Return True if the elements are stored in the order of a format, without gaps.

    Args:
        memory_format: format; default: flow.contiguous_format.
    """
    if memory_format is None or memory_format is contiguous_format:
        return self._is_row_major()
    order = checked("is_contiguous", memory_format, preserve=False).order
    return len(order) == self.ndim and in_order(self, order)._is_row_major()


def contiguous(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return x if its elements are stored in row-major order (or in the format), else a copy in this order.

    Args:
        input: tensor of any shape.
        memory_format: format; default: flow.contiguous_format.
    """
    if memory_format is None:
        return make_contiguous(input)
    format = checked("contiguous", memory_format, preserve=False)
    order_of("contiguous", format, input.shape)
    return input if is_contiguous(input, format) else copied(input, format)


def clone(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return a differentiable copy.

    Args:
        input: tensor of any shape.
        memory_format: order of the elements in memory; default: flow.contiguous_format.
    """
    if memory_format is None:
        return copy_of(input)
    return copied(input, checked("clone", memory_format))


def like(what: str, made: Tensor, format: memory_format | None, input: Tensor) -> Tensor:
    """Return `made`, a new tensor with the shape of `input`, stored in this format."""
    if format is None:
        return made
    order = order_of(what, checked(what, format), input.shape, input.stride())
    return out_of_order(copy_of(in_order(made, order)), order)


attach(Tensor, {"is_contiguous": is_contiguous})
