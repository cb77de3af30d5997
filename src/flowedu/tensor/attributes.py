"""PyTorch's tensor attributes: sizes, strides, bytes, device, and properties that are always False here."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import ArgumentError
from flowedu.errors import tensors as errors
from flowedu.tensor.arguments.dims import real_dim
from flowedu.tensor.devices.device import CPU, device, device_of, place_at


def size(self: Tensor, dim: int | None = None) -> Any:
    """Return the shape, or the size of one axis.

    Args:
        dim: axis; negative values count from the end; default: None, return the whole shape.

    Raises:
        AxisError: the tensor has no such axis.
    """
    return self.shape if dim is None else self.shape[real_dim(dim, self.ndim, "size")]


def dim(self: Tensor) -> int:
    """Return the number of axes."""
    return self.ndim


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Return the distance in memory between neighbors along each axis, in elements.

    Args:
        dim: axis; negative values count from the end; default: None, return the strides of all axes.

    Raises:
        AxisError: the tensor has no such axis.
    """
    return self.strides if dim is None else self.strides[real_dim(dim, self.ndim, "stride")]


def storage_offset(self: Tensor) -> int:
    """Return the number of elements between the start of the memory block and the first element."""
    return self._storage_offset


def element_size(self: Tensor) -> int:
    """Return the size of one element in bytes."""
    return self.dtype.bytes


def get_device(self: Tensor) -> int:
    """Return the index of the GPU, or -1 for the CPU."""
    return self._device - 1


def is_floating_point(self: Tensor) -> bool:
    """Return True if the dtype is floating."""
    return self.dtype.is_floating_point


def is_complex(self: Tensor) -> bool:
    """Return False: complex numbers are not supported."""
    return False


def is_inference(self: Tensor) -> bool:
    """Return True if the tensor was made in inference mode."""
    return self.inference


def _is_view(self: Tensor) -> bool:
    return self.link is not None


def _device(self: Tensor) -> device:
    if self.global_layout is not None:
        if thread_state.global_mode is not None:
            return device_of(place_at(self))
        raise ArgumentError("Only local tensors have 'device'. Please use '.placement' for global tensors.",
                            expected="a local tensor", got="a global one", fix="x.placement")
    return device_of(self._device) if self._device else CPU


def _always(value: object) -> property:
    return property(lambda self: value)


attach(Tensor, {f.__name__: f for f in (size, dim, stride, storage_offset, element_size, get_device,
                                        is_floating_point, is_complex, is_inference, _is_view)})
# ---- conversions
def to_float(self: Tensor) -> float:
    self._require_data("__float__()")
    return float(self.item())


def to_int(self: Tensor) -> int:
    self._require_data("__int__()")
    return int(self.item())


def to_index(self: Tensor) -> int:
    self._require_data("__index__()")
    if self.dtype.is_floating_point or self._numel != 1:
        raise errors.not_an_index(self.dtype.name, self.shape)
    return int(self.item())


def to_bool(self: Tensor) -> bool:
    self._require_data("__bool__()")
    if self._numel != 1:
        raise errors.ambiguous_bool(self._numel, self.shape)
    return bool(self.item())


def length(self: Tensor) -> int:
    if not self.ndim:
        raise errors.len_of_scalar()
    return self.shape[0]


def iterate(self: Tensor) -> Iterator[Tensor]:
    if not self.ndim:
        raise errors.iteration_over_scalar()
    return (self[i] for i in range(len(self)))


attach(Tensor, {
    "__float__": to_float, "__int__": to_int, "__index__": to_index, "__bool__": to_bool,
    "__len__": length, "__iter__": iterate, "ndimension": dim, "nelement": Tensor.numel,
    "device": property(_device),
    "is_cuda": property(lambda self: place_at(self) > 0, doc="True if the tensor is on a GPU."),
    "is_cpu": property(lambda self: place_at(self) == 0, doc="True if the tensor is in main memory."),
    "is_sparse": _always(False), "is_quantized": _always(False), "is_meta": _always(False),
    **dict.fromkeys(("is_mps", "is_xpu", "is_mkldnn", "is_nested"), _always(False)),
    "layout": _always("strided"), "__complex__": lambda self: complex(self.item()),
    "is_local": property(lambda self: self.global_layout is None,
                         doc="True if the tensor is stored in one process, on one device."),
    "output_nr": property(lambda self: self.out_index, doc="Index of the tensor in grad_fn's outputs."),
    "itemsize": property(element_size), "nbytes": property(lambda self: self._numel * self.dtype.bytes),
    "_base": property(lambda self: None if self.link is None else self.link.base,
                      doc="Tensor that this view is a part of, or None if this is not a view."),
    "_version": property(lambda self: self._version_count,
                         doc="Number of in-place writes to this memory, through any tensor that shares it."),
    "T": property(lambda self: self.permute(*reversed(range(self.ndim))), doc="View with reversed axes.")})
