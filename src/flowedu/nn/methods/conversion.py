"""Conversion of parameters and buffers to another dtype or device."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.core.values import dtype as dt
from flowedu.errors import DTypeError
from flowedu.tensor.devices import memory_format as formats


class Convertible:
    """Methods of Module that convert its tensors; the tensors stay the same objects."""

    # Methods of Module.
    children: Callable[..., Any]
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    zero_grad: Callable[..., None]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Convertible:
        """Replace the memory of every parameter, gradient, and buffer by that of fn(tensor)."""
        if recurse:
            for child in self.children():
                child._apply(fn)
        for t in (*self._parameters.values(), *self._buffers.values()):
            if t is not None:
                grad = t.grad
                t.data = fn(t.detach())
                if grad is not None:
                    t.grad = fn(grad.detach())
        return self

    def to(self, *args, **kwargs) -> Convertible:
        """Convert parameters and buffers in place: to(dtype), to(device), to(device, dtype), or to(tensor).

        Args:
            *args: a floating dtype, which applies to floating tensors only; a device; or a tensor with both.
            **kwargs: `device`, `dtype`, and memory_format, which applies to tensors with 4 axes
                (channels_last) or 5 axes (channels_last_3d).

        Returns:
            The module.
        """
        dtype, format = kwargs.pop("dtype", None), kwargs.pop("memory_format", None)
        if format is not None:
            format = formats.checked("nn.Module.to", format)
        rest = []
        for a in args:
            if isinstance(a, Tensor):
                dtype = a.dtype
            elif hasattr(a, "is_floating_point"):
                dtype = a
            elif a is not None:
                rest.append(a)
        if dtype is not None and not dtype.is_floating_point:
            raise DTypeError(f"nn.Module.to only accepts floating point dtypes, but got desired "
                             f"dtype={dtype!r}", expected="float16, float32, float64", got=repr(dtype),
                             fix="model.double() or model.to(flow.float32)")

        def convert(t):
            t = t.to(*rest, **kwargs) if rest or kwargs else t
            if format is not None and format.order is not None and len(format.order) == t.ndim:
                t = formats.contiguous(t, format)
            return t.to(dtype) if dtype is not None and t.dtype.is_floating_point else t

        return self._apply(convert)

    def to_global(self, placement=None, sbp=None) -> Convertible:
        """Convert every parameter and buffer to a global tensor.

        The present values are the shards of this rank (Tensor.to_global), so a weight (4, 2) with split(0) on
        two ranks becomes (8, 2). Gradients are dropped; the tensors stay the same objects.

        Args:
            placement: flow.placement of all tensors.
            sbp: flow.sbp of all tensors, or one per axis of the hierarchy, or a function from a tensor to its
                sbp.
        """
        self.zero_grad()

        def convert(t):
            return t.to_global(placement, sbp(t) if callable(sbp) and not hasattr(sbp, "text") else sbp)

        return self._apply(convert)

    def to_local(self) -> Convertible:
        """Convert every global parameter and buffer to the shard of this rank."""
        self.zero_grad()
        return self._apply(lambda t: t.to_local(copy=True) if t.is_global else t)

    to_consistent = to_global

    def float(self) -> Convertible:
        """Convert floating parameters and buffers to float32 and return the module."""
        return self._floating("float32")

    def double(self) -> Convertible:
        """Convert floating parameters and buffers to float64 and return the module."""
        return self._floating("float64")

    def half(self) -> Convertible:
        """Convert floating parameters and buffers to float16 and return the module."""
        return self._floating("float16")

    def bfloat16(self) -> Convertible:
        """Convert floating parameters and buffers to bfloat16 and return the module."""
        return self._floating("bfloat16")

    def _floating(self, name: str) -> Convertible:
        return self.to(getattr(dt, name))

    def type(self, dst_type) -> Convertible:
        """Convert all parameters and buffers to a dtype and return the module."""
        return self._apply(lambda t: t.to(dst_type))

    def cpu(self) -> Convertible:
        """Move parameters and buffers to main memory and return the module."""
        return self.to("cpu")

    def cuda(self, device=None) -> Convertible:
        """Move parameters and buffers to a GPU and return the module; raise an error if no GPU exists."""
        return self.to("cuda" if device is None else device)
