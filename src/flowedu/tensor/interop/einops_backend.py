"""Backend of einops, so that `einops.rearrange(x, "b c h w -> b (h w) c")` takes tensors.

einops looks for its backends among the subclasses of its AbstractBackend. The one for tensors can only be
defined when einops is imported, which may happen before or after flowedu is imported. So an import hook
defines the backend when einops is loaded. Nothing is imported for programs that do not use einops.
(`einops.array_api` needs no backend, because it uses flow.array_api.)
"""
from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.tensor.construction.creation import arange
from flowedu.tensor.interop.protocols import from_numpy
from flowedu.tensor.linalg.einsum import einsum
from flowedu.tensor.shapes import join_and_pad

_MODULE = "einops._backends"
_backends: list[type] = []               # einops finds a class only while something refers to it


def define_backend(einops: ModuleType) -> type:
    """Define and return the backend for tensors, a subclass of `einops.AbstractBackend`."""
    base: Any = einops.AbstractBackend

    class FlowBackend(base):
        """Operations of einops on tensors."""

        framework_name = "flowedu"

        def is_appropriate_type(self, tensor: object) -> bool:
            return isinstance(tensor, Tensor)

        def from_numpy(self, x: np.ndarray) -> Tensor:
            return from_numpy(x)

        def to_numpy(self, x: Tensor) -> np.ndarray:
            return x.detach().cpu().numpy()

        def arange(self, start: int, stop: int) -> Tensor:
            return arange(start, stop)

        def transpose(self, x: Tensor, axes: Sequence[int]) -> Tensor:
            return x.permute(axes)

        def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> Tensor:
            names = {"max": "amax", "min": "amin"}
            return getattr(x, names.get(operation, operation))(dim=tuple(axes)) if axes else x

        def stack_on_zeroth_dimension(self, tensors: Sequence[Tensor]) -> Tensor:
            return join_and_pad.stack(list(tensors))

        def add_axis(self, x: Tensor, new_position: int) -> Tensor:
            return x.unsqueeze(new_position)

        def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
            sizes = [-1] * n_axes
            for position, size in pos2len.items():
                x = x.unsqueeze(position)
                sizes[position] = size
            return x.expand(*sizes)

        def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
            return x.repeat(*repeats)

        def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
            return join_and_pad.cat(list(tensors), axis)

        def is_float_type(self, x: Tensor) -> bool:
            return x.dtype.is_floating_point

        def einsum(self, pattern: str, *x: Tensor) -> Tensor:
            return einsum(pattern, *x)

    _backends.append(FlowBackend)
    return FlowBackend


class _Finder:
    """Import hook: defines the backend after einops' own module has been loaded."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        spec = PathFinder.find_spec(name, path, target) if name == _MODULE else None
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            define_backend(module)

        spec.loader.exec_module = exec_module
        return spec


def register_backend() -> None:
    """Define the backend now if einops is already imported, or else when it is imported."""
    if _MODULE in sys.modules:
        define_backend(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Finder)


register_backend()
