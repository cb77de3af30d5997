"""Conversion of tensors: t.to(...), t.cpu(), and t.cuda()."""
from __future__ import annotations

from typing import Any

import numpy as np

from flowedu.core.eager.arrays import copy_of, from_numpy
from flowedu.core.eager.dispatch import (
    TapeNode,
    connect,
    constants_on,
    copy_to_device,
    is_grad_enabled,
    make_custom_node,
    set_history,
    unrecorded,
)
from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.grad.custom import Custom
from flowedu.core.ops import view as view_ops
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values import dtype as dt
from flowedu.core.values.storage import view
from flowedu.errors import ArgumentError, CallError, LazyTensorError, MissingAttributeError
from flowedu.tensor.arguments.types import Device
from flowedu.tensor.devices import device as gpus
from flowedu.tensor.devices.device import device, device_of, place_at, place_of
from flowedu.tensor.devices.memory_format import checked, contiguous, copied, memory_format, preserve_format
from flowedu.tensor.global_tensors.functions import of_kind, to_global
from flowedu.tensor.inplace.writing import bump


class Moved(Custom):
    """Tape node of a move of x to another device; its backward pass moves the gradient back to x's device."""

    def __init__(self, x: Tensor) -> None:
        super().__init__("to", (x,))
        self.place = x._device

    def backward(self, node: TapeNode, douts: list) -> list:
        return [move_to_place(douts[0], self.place)]


def move_to_place(x: Tensor, place: int, non_blocking: bool = False) -> Tensor:
    """Return x on the device with number `place`, or x itself if it is already on that device.

    The number 0 is the CPU, and 1 + k is cuda:k. The move is recorded for the backward pass. A global tensor
    moves to the devices of this kind on the same ranks. If `non_blocking`, the function returns while pinned
    memory is still being copied.
    """
    if x.is_lazy:
        if not place:
            return x
        raise LazyTensorError("to: a tensor of an nn.Graph stays where it is", expected="an eager tensor",
                              got="a lazy tensor", fix="graphs are on the CPU")
    if x.global_layout is not None:
        return _placed(x, "cuda" if place else "cpu")
    if x._device == place:
        return x
    y = _as_it_lies(x, place, non_blocking)
    if x.requires_grad and is_grad_enabled():
        set_history(y, make_custom_node(Moved(x), (x,)))
    return y


def _placed(x: Tensor, kind: str) -> Tensor:
    """Move a global tensor to the devices of another kind on the same ranks."""
    p = of_kind(x.global_layout.placement, kind)
    return x if p is x.global_layout.placement else to_global(x, p, x.global_layout.sbp)


def _as_it_lies(x: Tensor, place: int, non_blocking: bool) -> Tensor:
    """Return a copy of x on a device, with the same order of elements (such as channels_last)."""
    dense = x
    if not x._is_row_major():
        order = sorted(range(x.ndim), key=lambda d: -x.strides[d])
        dense = view(x, [x._sizes()[d] for d in order], [x.strides[d] for d in order], 0, Tensor)
        if not dense._is_row_major():
            return copy_to_device(x, place)
    if non_blocking and place and not x._device:
        y = gpus.part("pinned").queued(dense, place)
    else:
        y = copy_to_device(dense, place)
    if dense is not x:
        y = view(y, x._sizes(), x.strides, 0, Tensor)
    y.uniform = x.uniform
    return y


class made_on:
    """Context manager in which ops without inputs (constants, ranges, random numbers) use a device."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __enter__(self) -> None:
        self.before = constants_on(self.place)

    def __exit__(self, *exc: object) -> None:
        constants_on(self.before)


def use_device_of(x: object) -> made_on:
    """Return `made_on` with the device of x."""
    return made_on(getattr(x, "_device", 0))


def beside(t: Tensor, x: object) -> Tensor:
    """Move t, which was computed in main memory, to the device of x."""
    place = getattr(x, "_device", 0)
    return move_to_place(t, place) if place and t._device != place else t


def on_cpu(name: str, x: Tensor, **attrs: Any) -> Any:
    """Call an op that only works in main memory, and return its result on the device of x."""
    op = REGISTRY[name]
    out = op(move_to_place(x, 0) if getattr(x, "_device", 0) else x, **attrs)
    return tuple([beside(y, x) for y in out]) if isinstance(out, tuple) else beside(out, x)


def to(self: Tensor, *args: Any, dtype: dt.dtype | None = None, device: Device | None = None,
       other: Tensor | None = None, non_blocking: bool = False, copy: bool = False,
       memory_format: memory_format | None = None) -> Tensor:
    """Return this tensor with another dtype or on another device, or the tensor itself if nothing changes.

    The call has the forms to(dtype), to(device), to(device, dtype), and to(other). The arguments non_blocking
    and copy may follow.

    Args:
        dtype: dtype; default: unchanged.
        device: device; default: unchanged.
        other: tensor whose dtype and device are used; default: None.
        non_blocking: return before copies from pinned memory are done.
        copy: return a copy even if nothing changes.
        memory_format: order of the elements in memory; default: flow.preserve_format, which keeps the
            strides.

    Raises:
        DeviceError: the GPU does not exist.
    """
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    elif rest and (isinstance(rest[0], (str, _Device, int))
                   or rest[0] is None) and not isinstance(rest[0], bool):
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
        raise CallError("to: these arguments are not understood",
                        expected="to(dtype), to(device), to(device, dtype) or to(other)",
                        got=", ".join(map(repr, args)))
    if other is not None:
        dtype = other.dtype
    if (self.global_layout is not None and (isinstance(device, int) or isinstance(device, str)
                                            and ":" in device)):
        raise ArgumentError("to: a global tensor goes to a kind of device; its ranks say to which of them",
                            expected='"cpu" or "cuda"', got=repr(device),
                            fix="x.to_global(placement=...) brings it to other ranks")
    own = place_at(self)
    place = own
    if other is not None:
        place = place_at(other)
    elif device is not None:
        place = place_of(device)
    format = None if memory_format is None else checked("to", memory_format)
    kind = None if dtype is None else dt.as_dtype(dtype, "to: dtype")
    y = view_ops.cast.call((self,), (kind,)) if kind is not None and kind is not self.dtype else self
    y = move_to_place(y, place, non_blocking) if place != own else y
    if format is not None and format is not preserve_format:
        y = contiguous(y, format)
    if y is not self or not copy:
        return y
    return copy_of(self) if format is None else copied(self, format, "to")


_Device = device


def _is_dtype(x: object) -> bool:
    return isinstance(x, (dt.dtype, type)) or hasattr(x, "itemsize")


def cpu(self: Tensor) -> Tensor:
    """Return a copy in main memory, or the tensor itself if it is already in main memory."""
    return move_to_place(self, 0) if place_at(self) else self


def cuda(self: Tensor, device: Device | None = None, non_blocking: bool = False) -> Tensor:
    """Return a copy on a GPU, or the tensor itself if it is already on that GPU.

    Args:
        device: GPU; default: the current one.
        non_blocking: return before copies from pinned memory are done.

    Raises:
        DeviceError: no GPU exists.
    """
    return to(self, "cuda" if device is None else device, non_blocking=non_blocking)


def put(x: Tensor, a: np.ndarray) -> None:
    """Write the values of an array into x, which has the same shape and may be on any device.

    The write is not recorded for gradients.
    """
    if x._device or x.dtype.numpy is None:
        with unrecorded():
            x.copy_(from_numpy(a))
        return
    x.numpy()[...] = a
    bump(x)


def record_stream(self: Tensor, stream: Any) -> None:
    """Record that kernels of another stream use this memory, so that it is reused only after them.

    Args:
        stream: flow.cuda.Stream.
    """
    owner = self._owner
    if hasattr(owner, "users"):                          # other libraries manage their own memory
        owner.users = {*(owner.users or ()), stream}


def cuda_array_interface(self: Tensor) -> dict:
    """Return the interface through which PyCUDA, CuPy, and Numba read GPU memory.

    Raise AttributeError for a tensor on the CPU.
    """
    if not self._device or self.dtype.numpy is None:
        raise MissingAttributeError("__cuda_array_interface__: this tensor is not on a GPU, or of a dtype "
                                    "NumPy has not",
                                    expected="a tensor on cuda",
                                    got=f"{self.spec} on {device_of(self._device)}", fix='x.to("cuda")')
    item = self.dtype.bytes
    return {"shape": self._sizes(), "typestr": self.dtype.numpy.str, "data": (self.address, self._read_only),
            "strides": tuple(s * item for s in self.strides), "version": 3,
            "stream": gpus.part("exchange").current_handle(self._device - 1)}


TYPE_NAMES = {dt.float32: "FloatTensor", dt.float64: "DoubleTensor", dt.float16: "HalfTensor",
              dt.bfloat16: "BFloat16Tensor", dt.int32: "IntTensor", dt.int64: "LongTensor",
              dt.int16: "ShortTensor", dt.int8: "CharTensor", dt.uint8: "ByteTensor", dt.bool_: "BoolTensor"}


def type_(self: Tensor, dtype: dt.dtype | type | str | None = None,
          non_blocking: bool = False) -> Tensor | str:
    """Return the class name of the dtype, such as 'flowedu.FloatTensor', or convert to another dtype.

    Args:
        dtype: dtype or class name to convert to; default: None, return the class name.
        non_blocking: accepted for compatibility.
    """
    if dtype is None:
        return f"flowedu.{TYPE_NAMES[self.dtype]}"
    own = getattr(dtype, "dtype", None)                          # of flow.FloatTensor itself
    if isinstance(dtype, str):
        dtype = next((d for d, name in TYPE_NAMES.items() if dtype.rpartition(".")[2] == name), dtype)
    elif isinstance(own, dt.dtype):
        dtype = own
    return to(self, dt.as_dtype(dtype, "type: dtype"))


def pin_memory(self: Tensor, device: Device | None = None) -> Tensor:
    """Return a copy in pinned main memory, which a GPU reads directly.

    `.to("cuda", non_blocking=True)` of a pinned tensor returns before the transfer is done. If the tensor is
    already pinned or no GPU exists, the tensor itself is returned.

    Args:
        device: ignored; pinned memory serves all GPUs.

    Raises:
        ArgumentError: the tensor is on a GPU.
    """
    if place_at(self) or self.global_layout is not None:
        raise ArgumentError("pin_memory: only dense CPU tensors can be pinned",
                            expected="a local tensor in main memory",
                            got="a global tensor" if self.global_layout is not None
                            else f"a tensor on {self.device}", fix="x.cpu()")
    if not gpus.gpus() or is_pinned(self) or self.is_lazy:
        return self
    return gpus.part("pinned").copied(self)


def is_pinned(self: Tensor) -> bool:
    """Return True if the tensor is in pinned memory."""
    return (not self._device and self.has_memory and gpus.gpus() > 0
            and gpus.part("pinned").block_of(self) is not None)


connect(move=move_to_place)
attach(Tensor, {"to": to, "cpu": cpu, "cuda": cuda, "type": type_, "pin_memory": pin_memory,
                "record_stream": record_stream, "__cuda_array_interface__": property(cuda_array_interface),
                "is_pinned": is_pinned})
