"""A backend of einops: `einops.rearrange(x, "b c h w -> b (h w) c")` takes tensors, in eager mode and in graphs.

einops looks for its backends among the subclasses of its AbstractBackend. The one for tensors can only be defined when
einops is imported, which a program may do before or after it imports flowedu. So an import hook waits for the module;
nothing is imported for programs that do not use einops. (`einops.array_api` needs no backend: it uses flow.array_api.)
"""
from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from types import ModuleType

from flowedu.core.eager.tensor import Tensor
from flowedu.tensor import joining
from flowedu.tensor.creation import arange
from flowedu.tensor.einsum import einsum
from flowedu.tensor.interop import from_numpy

_MODULE = "einops._backends"
_backends: list[type] = []               # einops finds a class only while something refers to it


def define_backend(einops: ModuleType) -> type:
    """Define the backend for tensors as a subclass of `einops.AbstractBackend`, where einops finds it, and return it."""
    class FlowBackend(einops.AbstractBackend):
        """einops' operations on tensors."""

        framework_name = "flowedu"

        def is_appropriate_type(self, tensor) -> bool:
            return isinstance(tensor, Tensor)

        def from_numpy(self, x):
            return from_numpy(x)

        def to_numpy(self, x):
            return x.detach().cpu().numpy()

        def arange(self, start, stop):
            return arange(start, stop)

        def transpose(self, x, axes):
            return x.permute(axes)

        def reduce(self, x, operation, axes):
            names = {"max": "amax", "min": "amin"}
            return getattr(x, names.get(operation, operation))(dim=tuple(axes)) if axes else x

        def stack_on_zeroth_dimension(self, tensors):
            return joining.stack(list(tensors))

        def add_axis(self, x, new_position):
            return x.unsqueeze(new_position)

        def add_axes(self, x, n_axes, pos2len):
            sizes = [-1] * n_axes
            for position, size in pos2len.items():
                x = x.unsqueeze(position)
                sizes[position] = size
            return x.expand(*sizes)

        def tile(self, x, repeats):
            return x.repeat(*repeats)

        def concat(self, tensors, axis):
            return joining.cat(list(tensors), axis)

        def is_float_type(self, x) -> bool:
            return x.dtype.is_floating_point

        def einsum(self, pattern, *x):
            return einsum(pattern, *x)

    _backends.append(FlowBackend)
    return FlowBackend


class _Finder:
    """Import hook: defines the backend after einops' own module has been loaded."""

    @staticmethod
    def find_spec(name: str, path=None, target=None):
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
    """Define the backend now if einops is imported, else when it will be."""
    if _MODULE in sys.modules:
        define_backend(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Finder)


register_backend()
