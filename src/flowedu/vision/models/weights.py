"""Weights of models in `.safetensors` files, which contain numbers and names and no code."""
from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from flowedu.errors import CheckpointError, UnsupportedError
from flowedu.errors.extras import install
from flowedu.errors.files import replacing
from flowedu.nn import Module
from flowedu.saving.foreign import read_file
from flowedu.tensor.construction.creation import as_tensor
from flowedu.utils.download import cache_dir

M = TypeVar("M", bound=Module, covariant=True)
AnyModule = TypeVar("AnyModule", bound=Module)


class ModelFunction(Protocol[M]):
    """Type of functions such as vgg11."""

    def __call__(self, pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs) -> M: ...


def save_weights(model: Module, path: str | os.PathLike) -> Path:
    """Write the parameters and buffers of a model to a .safetensors file and return its path.

    An old file is replaced when everything is written.

    Args:
        model: module.
        path: file.
    """
    try:
        from safetensors.numpy import save
    except ImportError as e:
        raise UnsupportedError("save_weights: safetensors files need the package safetensors",
                               expected="safetensors", got=str(e), fix=install("safetensors")) from None
    with replacing(path) as f:
        f.write(save({name: np.asarray(t.detach().numpy(), order="C")
                      for name, t in model.state_dict().items()}))
    return Path(path)


def load_weights(model: Module, path: str | os.PathLike, strict: bool = True):
    """Load a .safetensors (or .npz) file into a model and return the result of load_state_dict.

    A file from PyTorch fits if it has the same names. The models of this package have torchvision's names.

    Args:
        model: module.
        path: file.
        strict: require the same names.

    Raises:
        CheckpointError (a RuntimeError): the file is missing, damaged, or does not fit.
    """
    if not Path(path).exists():
        raise CheckpointError(f"load_weights: there is no file {path}", expected="a .safetensors file",
                              got="no file")
    return model.load_state_dict({name: as_tensor(a) for name, a in read_file(path).items()}, strict=strict)


def finished(model: AnyModule, name: str, pretrained: bool) -> AnyModule:
    """Return the model, with the weights of `name` from the cache folder if `pretrained`.

    Raises CheckpointError if they are missing, because flowedu has no server.
    """
    if not pretrained:
        return model
    path = cache_dir() / "weights" / f"{name}.safetensors"
    if not path.exists():
        raise CheckpointError(f"{name}: pretrained weights, but there are none at {path}",
                              expected="that file",
                              got="no file",
                              fix="put them there (in PyTorch: "
                              "safetensors.torch.save_file(torchvision_model.state_dict(), path); or "
                              "flow.vision.models.save_weights of a model you trained), or pretrained=False, "
                              "weights=None")
    load_weights(model, path)
    return model


def model_function(make: Callable[..., M]) -> ModelFunction[M]:
    """Return `make` with the parameters `pretrained`, `progress`, and `weights`, under its name."""
    def f(pretrained: bool = False, progress: bool = True, *, weights=None, **kwargs):
        return finished(make(**kwargs), make.__name__, pretrained or weights is not None)

    signature = inspect.signature(f).replace(return_annotation=make.__annotations__["return"])
    functools.update_wrapper(f, make)
    f.__signature__ = signature  # type: ignore[attr-defined]  # an attribute of a function
    f.__doc__ = f"""{make.__doc__}

    Args:
        pretrained: load the weights from the cache folder; see models.weights.
        progress: ignored.
        weights: torchvision's form of pretrained: anything except None loads them.
        **kwargs: arguments of the class.
    """
    return f
