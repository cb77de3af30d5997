"""Parameters and buffers in another dtype or on another device."""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.eager.tensor import Tensor
from flowedu.core.values import dtype as dt
from flowedu.errors import DTypeError
from flowedu.tensor import memory_format as formats


class Convertible:
    """The part of Module that exchanges the memory of its tensors; the tensors stay the same objects."""

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Convertible:
        """Exchange the memory of every parameter, its gradient and every buffer for fn of it; the objects stay."""
        done = set()
        for module in self.modules():
            for t in (*module._parameters.values(), *module._buffers.values()):
                if t is None or id(t) in done:
                    continue
                done.add(id(t))
                new = fn(t.detach())
                grad = t.grad
                t.data = new
                if grad is not None:
                    t.grad = fn(grad.detach())
        return self

    def to(self, *args, **kwargs) -> Convertible:
        """to(dtype), to(device), to(device, dtype), to(tensor): parameters and buffers are converted in place.

        A dtype (a floating one) goes to floating tensors only, memory_format=flow.channels_last to those of 4 axes (its
        sister to those of 5). Returns self.
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
            raise DTypeError(f"nn.Module.to only accepts floating point dtypes, but got desired dtype={dtype!r}",
                             expected="float16, float32, float64", got=repr(dtype),
                             fix="model.double() or model.to(flow.float32)")

        def convert(t):
            t = t.to(*rest, **kwargs) if rest or kwargs else t
            if format is not None and format.order is not None and len(format.order) == t.ndim:
                t = formats.contiguous(t, format)
            return t.to(dtype) if dtype is not None and t.dtype.is_floating_point else t

        return self._apply(convert)

    def to_global(self, placement=None, sbp=None) -> Convertible:
        """Every parameter and buffer as a global tensor: the present values are this rank's shards (Tensor.to_global), so a
        weight (4, 2) with split(0) on two ranks is then (8, 2). Gradients are dropped; the tensors stay the same objects.

        Args:
            placement: flow.placement, the same for all. sbp: one flow.sbp or one for each axis of the hierarchy, the same
                for all, or a function of a tensor that says which.
        """
        self.zero_grad()

        def convert(t):
            return t.to_global(placement, sbp(t) if callable(sbp) and not hasattr(sbp, "text") else sbp)

        return self._apply(convert)

    def to_local(self) -> Convertible:
        """Every global parameter and buffer as this rank's shard."""
        self.zero_grad()
        return self._apply(lambda t: t.to_local(copy=True) if t.is_global else t)

    to_consistent = to_global

    def float(self) -> Convertible:
        """Floating parameters and buffers as float32. Returns self."""
        return self._floating("float32")

    def double(self) -> Convertible:
        """Floating parameters and buffers as float64. Returns self."""
        return self._floating("float64")

    def half(self) -> Convertible:
        """Floating parameters and buffers as float16. Returns self."""
        return self._floating("float16")

    def bfloat16(self) -> Convertible:
        """Floating parameters and buffers as bfloat16. Returns self."""
        return self._floating("bfloat16")

    def _floating(self, name: str) -> Convertible:
        return self.to(getattr(dt, name))

    def type(self, dst_type) -> Convertible:
        """All parameters and buffers in a dtype."""
        return self._apply(lambda t: t.to(dst_type))

    def cpu(self) -> Convertible:
        """Parameters and buffers in main memory. Returns self."""
        return self.to("cpu")

    def cuda(self, device=None) -> Convertible:
        """Move parameters and buffers to a GPU; raise an error if no GPU exists."""
        return self.to("cuda" if device is None else device)
