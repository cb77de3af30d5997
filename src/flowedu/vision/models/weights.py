"""Weights of models in files: `.safetensors`, which hold numbers and names and nothing that could run."""
from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from flowedu.errors import CheckpointError, UnsupportedError
from flowedu.errors.extras import install
from flowedu.errors.files import replacing
from flowedu.nn import Module
from flowedu.oneflow04.data.download import cache_dir
from flowedu.saving.foreign import read_file
from flowedu.tensor.creation import as_tensor


def save_weights(model: Module, path: str | os.PathLike) -> Path:
    """Write the parameters and buffers of `model` to a .safetensors file; an old one is replaced when all is written."""
    try:
        from safetensors.numpy import save
    except ImportError as e:
        raise UnsupportedError("save_weights: safetensors files need the package safetensors", expected="safetensors",
                               got=str(e), fix=install("safetensors")) from None
    with replacing(path) as f:
        f.write(save({name: np.asarray(t.detach().numpy(), order="C") for name, t in model.state_dict().items()}))
    return Path(path)


def load_weights(model: Module, path: str | os.PathLike, strict: bool = True):
    """Read a .safetensors (or .npz) file into `model`; strict: the names must be the same. Returns what load_state_dict
    returns.

    Files that PyTorch users have fit, where the names do: those of the models here are torchvision's. Raises
    CheckpointError (a RuntimeError) for a file that is missing, damaged or does not fit.
    """
    if not Path(path).exists():
        raise CheckpointError(f"load_weights: there is no file {path}", expected="a .safetensors file", got="no file")
    return model.load_state_dict({name: as_tensor(a) for name, a in read_file(path).items()}, strict=strict)


def finished(model: Module, name: str, pretrained: bool) -> Module:
    """`model`, with the weights of `name` from the cache folder if `pretrained`. Raises CheckpointError if there are none:
    flowedu has no server of its own."""
    if not pretrained:
        return model
    path = cache_dir() / "weights" / f"{name}.safetensors"
    if not path.exists():
        raise CheckpointError(f"{name}: pretrained weights, but there are none at {path}", expected="that file",
                              got="no file", fix="put them there (in PyTorch: safetensors.torch.save_file(torchvision_model"
                              ".state_dict(), path); or flow.vision.models.save_weights of a model you trained), or "
                              "pretrained=False, weights=None")
    load_weights(model, path)
    return model
