"""Files of other programs. .safetensors and .npz are supported; pickles raise an error with advice."""
from __future__ import annotations

import io
import json
import os
import re
from typing import Any

import numpy as np

from flowedu.errors.extras import install
from flowedu.saving.folder import CheckpointFileError
from flowedu.saving.opened import OpenFolder

_WAY_OUT = ("in {}: np.savez('state.npz', **{{k: v{}.numpy() for k, v in model.state_dict().items()}}); "
            "here: flow.load('state.npz')")


def read_file(path: str | os.PathLike | io.BytesIO) -> dict[str, Any]:
    """Return the content of a .safetensors or .npz file as {name: array}; bfloat16 values are tensors.

    The file may also be passed as bytes (io.BytesIO).

    Raises:
        CheckpointFileError: the file is missing, damaged, or of another format.
    """
    import zipfile
    inside = isinstance(path, io.BytesIO)
    name = "the BytesIO" if isinstance(path, io.BytesIO) else os.fspath(path)
    file: Any = path if inside else name
    try:
        if name.endswith(".safetensors"):
            return _safetensors(name)
        if name.endswith(".safetensors.index.json"):
            return _read_shards(name)
        if zipfile.is_zipfile(file) and not any(n.endswith(".pkl") for n in zipfile.ZipFile(file).namelist()):
            if inside:
                file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                contents = {k: arrays[k] for k in arrays.files}
            odd = [k for k, a in contents.items()
                   if not isinstance(a, np.ndarray) or a.dtype.kind not in "biuf"]
            if odd:
                raise ValueError(f"{odd[0]} is not an array of numbers")
            return contents
    except CheckpointFileError:
        raise
    except Exception as e:
        raise CheckpointFileError(f"flow.load: {name} cannot be read",
                                  expected="a whole .safetensors or .npz file",
                                  got=f"{type(e).__name__}: {e}"[:200],
                                  fix="it is damaged: take another copy") from None
    raise CheckpointFileError(f"flow.load: {name} is no file that is read without running what is in it",
                              got="a pickle of PyTorch, or something else",
                              expected="a directory of flow.save, .safetensors or .npz",
                              fix=_WAY_OUT.format("PyTorch", ".detach()"))


def _read_shards(name: str) -> dict[str, Any]:
    """Return the tensors of several .safetensors files, from an index {"weight_map": {tensor: file name}}."""
    with open(name, encoding="utf-8") as f:
        shards = json.load(f)["weight_map"]
    arrays: dict[str, Any] = {}
    for shard in sorted(set(shards.values())):
        if not re.fullmatch(r"[^/\\\0]+\.safetensors", shard):
            raise ValueError(f"{shard!r} is not the name of a .safetensors file in the same folder")
        tensors = read_file(os.path.join(os.path.dirname(name), shard))
        arrays |= {tensor: tensors[tensor] for tensor, place in shards.items() if place == shard}
    return arrays


# {name of a dtype in the format: NumPy dtype}; bfloat16 is read as bits
_NUMBERS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
            "I8": "i1", "U8": "u1", "BOOL": "?"}


def _safetensors(name: str) -> dict[str, Any]:
    from flowedu.tensor.dtypes.bfloat16 import of_bits
    try:
        from safetensors import deserialize
    except ImportError:
        raise CheckpointFileError(f"flow.load: {name} needs the package safetensors",
                                  expected="it, to read its files",
                                  got="not installed", fix=install("safetensors")) from None
    with open(name, "rb") as f:
        contents = dict(deserialize(f.read()))
    odd = [f"{k} is {x['dtype']}" for k, x in contents.items() if x["dtype"] not in _NUMBERS]
    if odd:
        raise CheckpointFileError(f"flow.load: {name} cannot be read", expected=", ".join(_NUMBERS),
                                  got=odd[0], fix="store the model in float32, float16 or bfloat16")
    arrays = {k: np.frombuffer(bytearray(x["data"]), _NUMBERS[x["dtype"]]).reshape(x["shape"])
              for k, x in contents.items()}
    return {k: of_bits(a) if contents[k]["dtype"] == "BF16" else a for k, a in arrays.items()}


def refuse_directory(path: str | os.PathLike, opened: OpenFolder) -> None:
    """Raise CheckpointFileError for a directory that flow.save did not write."""
    if opened.is_file("pickled_data"):
        raise CheckpointFileError(f"flow.load: {path} is a pickle of OneFlow, and reading a pickle would run "
                                  f"what is in it",
                                  expected="a directory of flowedu's flow.save, with state.json",
                                  got="pickled_data", fix=_WAY_OUT.format("OneFlow", "")
                                  + "; flow.load of one of its tensor_<n> directories works")
    if opened.is_file("model.mlir"):
        raise CheckpointFileError(f"flow.load: {path} is a graph, not a state",
                                  expected="a directory with state.json",
                                  got="model.mlir", fix="flow.load_graph(path)")
