"""t.to(...), t.cpu(), t.cuda(): dtype and device of a tensor."""
from __future__ import annotations

from flowedu.core.ops.arrays import copy_of
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.tensor import Tensor, attach
from flowedu.core.values import dtype as dt
from flowedu.errors import CallError
from flowedu.tensor.device import device, usable
from flowedu.tensor.memory_format import checked, contiguous, copied, preserve_format

_CAST = REGISTRY["cast"]


def to(self, *args, dtype=None, device=None, other: Tensor | None = None, non_blocking: bool = False, copy: bool = False,
       memory_format=None) -> Tensor:
    """This tensor with another dtype or on another device; itself when nothing changes and `copy` is False.

    Forms: to(dtype), to(device), to(device, dtype), to(other), with non_blocking and copy after them.
    memory_format: of the result; flow.preserve_format, as leaving it out, keeps the tensor as it lies.
    Raises DeviceError for a GPU: there is none.
    """
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    elif rest and (isinstance(rest[0], (str, _Device, int)) or rest[0] is None) and not isinstance(rest[0], bool):
        device = rest.pop(0)
        if rest and (rest[0] is None or _is_dtype(rest[0])):
            dtype = rest.pop(0)
    elif rest and _is_dtype(rest[0]):
        dtype = rest.pop(0)
    if rest:
        non_blocking = rest.pop(0)
    if rest:
        copy = rest.pop(0)
    if rest or not isinstance(non_blocking, (bool, int)) or not isinstance(copy, (bool, int)):
        raise CallError("to: these arguments are not understood", expected="to(dtype), to(device), to(device, dtype) or "
                        "to(other)", got=", ".join(map(repr, args)))
    if other is not None:
        dtype = other.dtype
    if device is not None:
        usable(f"cuda:{device}" if isinstance(device, int) else device)
    format = None if memory_format is None else checked("to", memory_format)
    kind = None if dtype is None else dt.as_dtype(dtype, "to: dtype")
    y = _CAST.call((self,), (kind,)) if kind is not None and kind is not self.dtype else self
    if format is not None and format is not preserve_format:
        y = contiguous(y, format)
    return y if y is not self or not copy else copy_of(self) if format is None else copied(self, format, "to")


_Device = device


def _is_dtype(x) -> bool:
    return isinstance(x, (dt.dtype, type)) or hasattr(x, "itemsize")


def cpu(self) -> Tensor:
    """Itself: every tensor is on the CPU."""
    return self


def cuda(self, device=None, non_blocking: bool = False) -> Tensor:
    """Raises DeviceError: this build has no GPU."""
    usable("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)
    return self


TYPE_NAMES = {dt.float32: "FloatTensor", dt.float64: "DoubleTensor", dt.float16: "HalfTensor",
              dt.bfloat16: "BFloat16Tensor", dt.int32: "IntTensor", dt.int64: "LongTensor", dt.int8: "CharTensor",
              dt.uint8: "ByteTensor", dt.bool_: "BoolTensor"}


def type_(self, dtype=None, non_blocking: bool = False):
    """Without argument the class name of its dtype, 'flowedu.FloatTensor'; else the tensor in that dtype (also by name)."""
    if dtype is None:
        return f"flowedu.{TYPE_NAMES[self.dtype]}"
    if isinstance(dtype, str):
        dtype = next((d for d, name in TYPE_NAMES.items() if dtype.rpartition(".")[2] == name), dtype)
    elif isinstance(getattr(dtype, "dtype", None), dt.dtype):     # flow.FloatTensor itself
        dtype = dtype.dtype
    return to(self, dt.as_dtype(dtype, "type: dtype"))


def pin_memory(self, device=None) -> Tensor:
    """Itself: memory is pinned for a GPU only."""
    return self


attach(Tensor, {"to": to, "cpu": cpu, "cuda": cuda, "type": type_, "pin_memory": pin_memory,
                "is_pinned": lambda self: False})
