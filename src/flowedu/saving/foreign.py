"""Files of other programs: .safetensors and .npz are read; pickles are refused, with a way out."""
from __future__ import annotations

import io
import os

import numpy as np

from flowedu.errors.extras import install
from flowedu.saving.folder import CheckpointFileError
from flowedu.saving.opened import OpenFolder

_WAY_OUT = ("in {}: np.savez('state.npz', **{{k: v{}.numpy() for k, v in model.state_dict().items()}}); "
            "here: flow.load('state.npz')")


def read_file(path: str | os.PathLike | io.BytesIO) -> dict[str, np.ndarray]:
    """{name: array} of a .safetensors or .npz file, or of the bytes of the latter. Raises CheckpointFileError."""
    import zipfile
    inside = isinstance(path, io.BytesIO)
    name, file = ("the BytesIO", path) if inside else (os.fspath(path),) * 2
    try:
        if name.endswith(".safetensors"):
            return _safetensors(name)
        if zipfile.is_zipfile(file) and not any(n.endswith(".pkl") for n in zipfile.ZipFile(file).namelist()):
            if inside:
                file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                return {k: arrays[k] for k in arrays.files}
    except CheckpointFileError:
        raise
    except Exception as e:
        raise CheckpointFileError(f"flow.load: {name} cannot be read", expected="a whole .safetensors or .npz file",
                                  got=f"{type(e).__name__}: {e}"[:200], fix="it is damaged: take another copy") from None
    raise CheckpointFileError(f"flow.load: {name} is no file that is read without running what is in it", got="a pickle of "
                              "PyTorch, or something else", expected="a directory of flow.save, .safetensors or .npz",
                              fix=_WAY_OUT.format("PyTorch", ".detach()"))


def _safetensors(name: str) -> dict[str, np.ndarray]:
    try:
        from safetensors.numpy import load_file
    except ImportError:
        raise CheckpointFileError(f"flow.load: {name} needs the package safetensors", expected="it, to read its files",
                                  got="not installed", fix=install("safetensors")) from None
    arrays = load_file(name)
    odd = [f"{k} is {a.dtype}" for k, a in arrays.items() if a.dtype.kind not in "biuf"]   # bfloat16, where NumPy knows it
    if odd:
        raise CheckpointFileError(f"flow.load: {name} cannot be read", expected="the element types of NumPy", got=odd[0],
                                  fix="store the model in float32, or float16")
    return arrays


def refuse_directory(path: str | os.PathLike, opened: OpenFolder) -> None:
    """Raise CheckpointFileError for a directory that is none of flow.save's; return otherwise."""
    if opened.is_file("pickled_data"):
        raise CheckpointFileError(f"flow.load: {path} is a pickle of OneFlow, and reading a pickle would run what is in it",
                                  expected="a directory of flowedu's flow.save, with state.json", got="pickled_data",
                                  fix=_WAY_OUT.format("OneFlow", "")
                                  + "; flow.load of one of its tensor_<n> directories works")
    if opened.is_file("model.mlir"):
        raise CheckpointFileError(f"flow.load: {path} is a graph, not a state", expected="a directory with state.json",
                                  got="model.mlir", fix="flow.load_graph(path)")
