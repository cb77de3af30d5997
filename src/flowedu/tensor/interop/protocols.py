"""Conversion between tensors and other Python objects, with NumPy, DLPack, copy, and pickle."""
from __future__ import annotations

import copy
from types import ModuleType
from typing import Any, SupportsIndex

import numpy as np

from flowedu.core import extensions
from flowedu.core.eager.arrays import copy_of, from_numpy, make_contiguous, tensor_alias
from flowedu.core.eager.dispatch import set_data
from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.values import dtype as dt
from flowedu.core.values.storage import empty as _empty
from flowedu.errors import ArgumentError, CallError, GradientError, LazyTensorError
from flowedu.tensor.arguments.types import Device
from flowedu.tensor.devices import device as devices
from flowedu.tensor.devices.conversion import beside
from flowedu.tensor.inplace.writing import lend
from flowedu.tensor.interop import dlpack


def alike(a: np.ndarray, x: object = None) -> Tensor:
    """Return the array as a tensor on the device of x, and mark its values as equal on every rank.

    For example, positions computed from lists or from a global tensor's values are equal on every rank.
    """
    t = from_numpy(np.asarray(a, order="C"))
    t.uniform = True
    return beside(t, x)


def __array__(self: Tensor, dtype: type | np.dtype | str | None = None,
              copy: bool | None = None) -> np.ndarray:
    """Return the tensor as an array, over the same memory if dtype and copy allow it."""
    a = self.numpy()
    if dtype is not None and a.dtype != dtype:
        if copy is False:
            raise ArgumentError("a copy is needed to change the dtype",
                                got=f"{a.dtype} to {np.dtype(dtype)}, copy=False")
        return a.astype(dtype)
    return a.copy() if copy else a


# ---- DLPack
def __dlpack__(self: Tensor, *, stream: Any = None, max_version: tuple[int, int] | None = None,
               dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
    """Return a DLPack capsule over this memory, for another library's from_dlpack.

    Args:
        stream: the consumer's stream for a GPU tensor (1 or None: the default stream), which waits for work
            queued here;
            -1: no wait.
        max_version: the newest DLPack version that the consumer supports; default: None, before 1.0.
        dl_device: the requested device: the present one, or (1, 0) for a copy on the CPU; default: the
            present one.
        copy: True: always copy; False: never copy; None: copy if necessary.

    Raises:
        BufferError: the tensor requires a gradient, or is on another device and copy is False.
    """
    self._require_data("__dlpack__()")
    if self.global_layout is not None:
        raise BufferError("dlpack: a global tensor is no one array: x.to_local() is this rank's part of it")
    if stream is not None and stream != -1 and not self._device:
        raise ArgumentError("__dlpack__: a CPU tensor has no stream", expected="None", got=repr(stream))
    if self.requires_grad:
        raise BufferError("can't export tensors that require gradient; use tensor.detach()")
    wanted, own = None if dl_device is None else tuple(int(i) for i in dl_device), __dlpack_device__(self)
    if wanted not in (None, own) and (wanted != (1, 0) or copy is False):
        where = f"cuda:{own[1]}" if self._device else "the CPU"
        raise BufferError(f"dlpack: this tensor is on {where}, device {own}, not {wanted}")
    t = self if not copy else copy_of(self.detach())
    t = t if wanted in (None, own) else t.cpu()
    if t._device and stream != -1:
        devices.part("exchange").handed_over(t._device - 1, stream)
    return dlpack.export(t, max_version is not None and tuple(max_version) >= (1, 0))


def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    return (2, self._device - 1) if self._device else (1, 0)


def from_dlpack(x: Any, *, device: Device | None = None, copy: bool | None = None) -> Tensor:
    """Return a tensor over the memory of another library's array, or of a DLPack capsule.

    On a GPU, work that the other library has already queued is finished before work that flowedu queues
    later.

    Args:
        x: array with __dlpack__, or a capsule.
        device: device of the result; default: None, the device of the memory.
        copy: True always copies, and False raises BufferError if a copy is needed; default: None, copy only
            if needed.
    """
    if hasattr(x, "__dlpack__"):
        kind, index = (int(i) for i in x.__dlpack_device__()) if hasattr(x, "__dlpack_device__") else (1, 0)
        options = {}
        if kind in (2, 13) and index < devices.gpus():
            options["stream"] = devices.part("exchange").current_handle(index)
        elif kind != 1 and device is not None and devices.place_of(device) == 0:
            options.update(dl_device=(1, 0), copy=copy)      # only its library can copy this memory
        try:
            x = x.__dlpack__(max_version=(1, 0), **options)
        except TypeError:                                # an older producer
            x = x.__dlpack__(**options)
    elif type(x).__name__ != "PyCapsule":
        raise CallError("from_dlpack: this object has no __dlpack__",
                        expected="an array, a tensor or a capsule", got=type(x).__name__)
    t = dlpack.take(x, Tensor, devices.gpus())
    wanted = t.device if device is None else devices.device_of(devices.place_of(device))
    if copy is False and wanted != t.device:
        raise BufferError(f"from_dlpack: the memory is on {t.device}; copy=False cannot bring it to {wanted}")
    return t.to(device=wanted, copy=bool(copy))


# ---- the array API standard
def __array_namespace__(self: Tensor, /, *, api_version: str | None = None) -> ModuleType:
    """Return `flow.array_api`, the namespace of the Python array API standard.

    Args:
        api_version: a published version of the standard, such as "2024.12"; None: the newest. Later versions
            contain the functions of earlier ones, so the namespace is the same.

    Raises:
        ArgumentError: a ValueError, for a version that is not known.
    """
    array_api = extensions.array_api
    versions = ("2021.12", "2022.12", "2023.12", "2024.12", array_api.__array_api_version__)
    if api_version not in (None, *versions):
        raise ArgumentError("__array_namespace__: unknown version of the array API standard",
                            expected=", ".join(versions), got=repr(api_version), fix="leave api_version out")
    return array_api


def to_device(self: Tensor, device: Device, /, *, stream: Any = None) -> Tensor:
    """Return the tensor on another device, as `x.to(device)` does.

    Args:
        device: name or flow.device.
        stream: only None is supported, because transfers use the current stream.

    Raises:
        ArgumentError: `stream` is not None.
    """
    if stream is not None:
        raise ArgumentError("to_device: transfers use the current stream", expected="stream=None",
                            got=repr(stream), fix="with flow.cuda.stream(s): x.to_device(device)")
    return self.to(device)


def __complex__(self: Tensor) -> complex:
    """Return the value of a tensor with one element as a Python complex number."""
    return complex(self.item())


# ---- memory
def data_ptr(self: Tensor) -> int:
    """Return the address of the first element."""
    self._require_data("data_ptr()")
    if self.has_memory:
        lend(self)
    return self.address if self._numel else 0


class UntypedStorage:
    """Memory block of a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def data_ptr(self) -> int:
        """Return the address of the block."""
        return self._tensor._block_address[0]

    def nbytes(self) -> int:
        """Return the size of the block in bytes, which may exceed that of the tensor."""
        return self._tensor._block_address[1]

    size = __len__ = nbytes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._tensor.shares_block(other._tensor)

    def __hash__(self) -> int:
        return hash(self.data_ptr())


def untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the memory block of this tensor; tensors that share memory return equal blocks."""
    self._require_data("untyped_storage()")
    return UntypedStorage(self)


def _get_data(self: Tensor) -> Tensor:
    return tensor_alias(self) if self.has_memory and self.global_layout is None else self.detach()


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise CallError("data: not a tensor", expected="a tensor", got=type(value).__name__)
    if self.is_lazy or value.is_lazy:
        raise LazyTensorError("data: memory cannot be exchanged in nn.Graph.build", expected="eager tensors",
                              got="a lazy tensor", fix="x.copy_(value) writes the values")
    if self.tracked and not value._can_track:
        raise GradientError("data has a dtype that cannot require gradients", got=repr(value.dtype))
    set_data(self, value)


# ---- copy and pickle
def _rebuilt(cls: type, array: np.ndarray, dtype: dt.dtype, shape: tuple, requires_grad: bool,
             attributes: dict | None = None) -> Tensor:
    t = _empty(shape, dtype, cls)
    if dtype.numpy is None:                              # bits of bfloat16
        words = np.frombuffer(array, np.uint16).reshape(shape)
        np.frombuffer(memory_of(t), np.uint16).reshape(shape)[...] = words
    else:
        t.numpy()[...] = array
    if requires_grad:
        t.tracked = True
    vars(t).update(attributes or {})
    return t


def memory_of(t: Tensor) -> Any:
    """Return the memory of a contiguous CPU tensor as a buffer of bytes, also for bfloat16."""
    import ctypes
    return (ctypes.c_char * (t._numel * t.dtype.bytes)).from_address(t.address)


def __reduce_ex__(self: Tensor, protocol: SupportsIndex) -> tuple:
    self._require_data("__reduce_ex__()")
    # Only the values; the loader chooses the device.
    whole = make_contiguous(self.detach()._on_host())
    array = np.ascontiguousarray(whole.numpy()).reshape(whole._sizes()) if self.dtype.numpy is not None \
        else bytes(memory_of(whole))
    return _rebuilt, (type(self), array, self.dtype, self._sizes(), self.requires_grad, vars(self) or None)


def __copy__(self: Tensor) -> Tensor:
    """Return another tensor over the same memory."""
    y = tensor_alias(self, type(self))
    y.tracked = self.requires_grad
    vars(y).update(vars(self))
    return y


def _copy_in_memory(x: Tensor, memo: dict) -> Tensor:
    """Return a copy of x; tensors that share memory have copies that share memory.

    This holds if a contiguous one of them contains the others; the base of a view is copied first.
    """
    if x._device:
        return copy_of(x.detach())
    if x._base is not None and id(x._base) not in memo:
        copy.deepcopy(x._base, memo)
    copies = memo.setdefault("tensors by memory", {}).setdefault((x._block_address, x.dtype), [])
    size = x.dtype.bytes
    span = 1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride()))
    for other, y in copies:
        offset = (x.data_ptr() - other.data_ptr()) // size
        if x.numel() and offset >= 0 and offset + span <= other.numel():
            return y.as_strided(tuple(x.shape), x.stride(), offset)
    y = copy_of(x.detach())
    if x.is_contiguous():
        copies.append((x, y))
    return y


def __deepcopy__(self: Tensor, memo: dict) -> Tensor:
    """Return a leaf with a copy of the values; it requires a gradient if this tensor is a leaf that does.

    PyTorch accepts leaves only; here the copy of a computed tensor has no history, as in OneFlow. Tensors of
    one deepcopy that share memory also share it in the copy.
    """
    if id(self) in memo:
        return memo[id(self)]
    self._require_data("__deepcopy__()")
    y = tensor_alias(_copy_in_memory(self, memo), type(self))
    y.tracked = self.tracked and self.is_leaf
    if self.is_leaf and self.grad is not None:
        y.grad = self.grad.__deepcopy__(memo)
    memo[id(self)] = y
    vars(y).update(copy.deepcopy(vars(self), memo))
    return y


attach(Tensor, {f.__name__: f for f in (__array__, __array_namespace__, __complex__, __dlpack__,
                                        __dlpack_device__,
                                        data_ptr, to_device, untyped_storage, __reduce_ex__, __copy__,
                                        __deepcopy__)})
attach(Tensor, {"data": property(_get_data, _set_data,
                                 doc="The same memory without history. An assignment replaces the memory "
                                 "and keeps history and gradient."),
                "storage": untyped_storage})
