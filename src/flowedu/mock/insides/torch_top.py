"""Top-level names of torch with PyTorch's semantics.

load and save have PyTorch's arguments (the second argument of load is the device, not the rank that reads).
range includes its end. Functions that OneFlow 0.4 also had for blobs (oneflow04/names.py) accept tensors
only. Tensor types such as FloatTensor are included.
"""
from __future__ import annotations

import math
import os
import types
from typing import IO, Any

import numpy as np

import flowedu as flow
from flowedu.mock.insides.torch_in_place import *  # noqa: F403
from flowedu.mock.insides.torch_tensors import *  # noqa: F403
from flowedu.saving import saver_for
from flowedu.saving.packed import pack_file
from flowedu.tensor.construction.creation import eye, ones, ones_like, zeros, zeros_like  # noqa: F401
from flowedu.tensor.elementwise import clamp, clip, where  # noqa: F401
from flowedu.tensor.indexing.gather_scatter import gather, masked_fill  # noqa: F401
from flowedu.tensor.indexing.nonzero_positions import argwhere, nonzero  # noqa: F401
from flowedu.tensor.indexing.sort_and_search import argsort, sort  # noqa: F401
from flowedu.tensor.linalg.products import matmul  # noqa: F401
from flowedu.tensor.linalg.products import mm as spmm  # noqa: F401
from flowedu.tensor.reductions.cumulative import trapezoid as trapz  # noqa: F401
from flowedu.tensor.shapes.join_and_pad import cat as concat  # noqa: F401
from flowedu.tensor.shapes.join_and_pad import diag, stack, tril, triu  # noqa: F401
from flowedu.tensor.shapes.reshape_and_permute import (  # noqa: F401
    flatten,
    reshape,
    squeeze,
    swapaxes,
    transpose,
)

# Libraries use these in tables at import. Using one in flowedu raises an error that suggests a dtype.
uint16, uint32, uint64 = map(np.dtype, (np.uint16, np.uint32, np.uint64))


def range(start=0, end=None, step=1, *, dtype=None, device=None,  # noqa: A001
          requires_grad: bool = False) -> flow.Tensor:
    """Return start, start + step, ..., including end; float32 by default. range(end) starts at 0."""
    start, end = (0, start) if end is None else (start, end)
    count = math.floor((end - start) / step) + 1
    y = flow.arange(max(count, 0), dtype=flow.float64, device=device) * step + start
    return y.to(flow.get_default_dtype() if dtype is None else dtype).requires_grad_(requires_grad)


def _foreach_copy_(self, src, non_blocking: bool = False) -> None:
    """Copy each tensor of `src` into the tensor of `self` at the same position."""
    for target, source in zip(self, src, strict=True):
        target.copy_(source, non_blocking)


def _wide(data: Any, dtype: flow.dtype | None) -> flow.dtype | None:
    """Return dtype; if it is None, return float64 for a list that contains numpy.float64 numbers."""
    def has_float64(x) -> bool:
        return any(map(has_float64, x)) if isinstance(x, (list, tuple)) else type(x) is np.float64

    return flow.float64 if dtype is None and isinstance(data, (list, tuple)) and has_float64(data) else dtype


def tensor(data, *, dtype=None, device=None, requires_grad: bool = False,
           pin_memory: bool = False) -> flow.Tensor:
    """Return a tensor with a copy of data. A list with numpy.float64 numbers gives float64 by default."""
    return flow.tensor(data, dtype=_wide(data, dtype), device=device, requires_grad=requires_grad,
                       pin_memory=pin_memory)


def as_tensor(data, dtype=None, device=None) -> flow.Tensor:
    """Convert data to a tensor. Tensors are unchanged, arrays share their memory, others are copied."""
    return flow.as_tensor(data, _wide(data, dtype), device)


def asarray(obj, *, dtype=None, device=None, copy: bool | None = None,
            requires_grad: bool | None = None) -> flow.Tensor:
    """Return as_tensor(obj). copy=True always copies the data."""
    x = as_tensor(obj, dtype, device)
    x = x.detach().clone() if copy else x
    return x.requires_grad_() if requires_grad else x


class layout:  # noqa: N801
    """Memory layout of a tensor: only `strided` exists."""

    def __repr__(self) -> str:
        return "torch.strided"


strided = layout()


def save(obj: Any, f: str | os.PathLike | IO[bytes], pickle_module=None, pickle_protocol: int = 2,
         _use_new_zipfile_serialization: bool = True) -> None:
    """Save obj with flow.save as one file in flowedu's format. f: a path, or a file open for writing bytes.

    Nothing is pickled, so the pickle arguments have no effect.
    """
    if not isinstance(f, (str, os.PathLike)) or saver_for(type(obj)) is not None:
        flow.save(obj, f)
    else:
        pack_file(lambda stream: flow.save(obj, stream), f)


def load(f: str | os.PathLike | IO[bytes], map_location: Any = None, pickle_module=None, *,
         weights_only: bool | None = None, mmap: bool | None = None, **pickle_load_args) -> Any:
    """Return flow.load(f, map_location=map_location).

    map_location: a device, or as in PyTorch a dict {device: device} or a function, applied to "cpu", the
    device of saved tensors. weights_only has no effect, because loading never executes code; nor do mmap
    and pickle_module.
    """
    if isinstance(map_location, dict):
        map_location = map_location.get("cpu")
    elif callable(map_location) and not isinstance(map_location, flow.device):
        place = map_location(None, "cpu")                 # a function of (storage, location)
        map_location = place if isinstance(place, (str, flow.device)) else None
    return flow.load(f, map_location=map_location)


def _show_config() -> str:
    """Return the version and the number of threads."""
    return f"flowedu {vars(flow)['__version__']}, {flow.get_num_threads()} threads"


__config__ = types.SimpleNamespace(show=_show_config, parallel_info=_show_config)
