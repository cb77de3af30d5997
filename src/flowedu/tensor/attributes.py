"""PyTorch's tensor attributes: sizes, strides, bytes, device, and properties that are always False here."""
from __future__ import annotations

from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import ArgumentError
from flowedu.tensor.device import CPU, device_of, place_at
from flowedu.tensor.dims import real_dim


def size(self, dim: int | None = None):
    """The shape, or one axis of it."""
    return self.shape if dim is None else self.shape[real_dim(dim, self.ndim, "size")]


def dim(self) -> int:
    """How many axes it has."""
    return self.ndim


def stride(self, dim: int | None = None):
    """In elements: how far apart neighbours along each axis are."""
    return self.strides if dim is None else self.strides[real_dim(dim, self.ndim, "stride")]


def storage_offset(self) -> int:
    """Elements between the start of the memory block and the first element."""
    return self._storage_offset


def element_size(self) -> int:
    """Bytes of one element."""
    return self.dtype.bytes


def get_device(self) -> int:
    """The number of its GPU; -1: the CPU."""
    return self._device - 1


def is_floating_point(self) -> bool:
    """Whether the dtype is one of floats."""
    return self.dtype.is_floating_point


def is_complex(self) -> bool:
    """False: there are no complex numbers."""
    return False


def is_inference(self) -> bool:
    """Whether it was made in inference mode."""
    return self.inference


def _is_view(self) -> bool:
    return self.link is not None


def _device(self):
    if self.global_layout is not None:
        if thread_state.global_mode is not None:
            return device_of(place_at(self))
        raise ArgumentError("Only local tensors have 'device'. Please use '.placement' for global tensors.",
                            expected="a local tensor", got="a global one", fix="x.placement")
    return device_of(self._device) if self._device else CPU


def _always(value, doc: str | None = None) -> property:
    return property(lambda self: value, doc=doc)


attach(Tensor, {f.__name__: f for f in (size, dim, stride, storage_offset, element_size, get_device, is_floating_point,
                                        is_complex, is_inference, _is_view)})
attach(Tensor, {
    "ndimension": dim, "nelement": Tensor.numel, "device": property(_device),
    "is_cuda": property(lambda self: place_at(self) > 0, doc="Whether it is on a GPU."),
    "is_cpu": property(lambda self: place_at(self) == 0, doc="Whether it is in main memory."),
    "is_sparse": _always(False), "is_quantized": _always(False), "is_meta": _always(False),
    **dict.fromkeys(("is_mps", "is_xpu", "is_mkldnn", "is_nested"), _always(False)),
    "layout": _always("strided"), "__complex__": lambda self: complex(self.item()),
    "is_local": property(lambda self: self.global_layout is None, doc="Whether it lives in one process, on one device."),
    "output_nr": property(lambda self: self.out_index, doc="Which output of grad_fn it is."),
    "itemsize": property(element_size), "nbytes": property(lambda self: self._numel * self.dtype.bytes),
    "_base": property(lambda self: None if self.link is None else self.link.base,
                      doc="The tensor whose memory this view looks at; None: not a view."),
    "_version": property(lambda self: self._version_count,
                         doc="How often this memory was written in place, through whichever tensor."),
    "T": property(lambda self: self.permute(*reversed(range(self.ndim))), doc="All axes reversed.")})
