"""flow.save(state, path) and flow.load(path).

    path/
      state.json              dicts, lists, numbers, strings, and {"tensor": "tensor_0"} for a tensor
      tensor_0/out, meta      one directory per tensor, as in every checkpoint (saving/folder.py)
      snapshot_done

For an open file (io.BytesIO, open(path, "wb")) the same content is one zip file (saving/packed.py).

OneFlow writes a pickle, `pickled_data`, instead of state.json. Loading a pickle runs code, so flowedu does
not use pickles.
"""
from __future__ import annotations

import importlib
import json
import math
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from flowedu.core.layers.parameter import Parameter
from flowedu.core.values import dtype as dt
from flowedu.errors import FlowError
from flowedu.saving import folder, packed
from flowedu.saving.folder import CheckpointFileError
from flowedu.saving.foreign import read_file, refuse_directory
from flowedu.saving.opened import OpenFolder
from flowedu.tensor import Tensor
from flowedu.tensor.construction.creation import as_tensor
from flowedu.tensor.global_tensors.functions import holds_global, load_global, save_global

FILE, FORMAT = "state.json", "flowedu state 1"
_SAVERS: dict[type, Callable] = {}
_DTYPES = {d.name: d for d in dt.dtypes()}


def register_saver(cls: type, function: Callable[[Any, Any], None]) -> None:
    """Make flow.save pass objects of class `cls` to `function(object, path)`.

    Args:
        cls: the class; objects of subclasses are also passed.
        function: a function of the object and the path.
    """
    _SAVERS[cls] = function


def saver_for(cls: type) -> Callable[[Any, Any], None] | None:
    """Return the function registered for `cls` or the nearest of its base classes."""
    if "flowedu.core.trace.graph" in sys.modules:            # graphs may need the saver of saving.graph
        importlib.import_module("flowedu.saving.graph")
    return next((_SAVERS[c] for c in cls.__mro__ if c in _SAVERS), None)


def save(obj: Any, path: str | os.PathLike | IO[bytes], global_dst_rank: int | None = None) -> None:
    """Write a state into the directory `path`, or into a file that is open for writing bytes.

    An old state at `path` is replaced when the new one is complete. Parent directories are created. A
    compiled nn.Graph is written for deployment. A flat dict of NumPy arrays is written as a checkpoint of
    job functions, like flow.checkpoint.save does.

    Args:
        obj: nested dicts, lists, and tuples of tensors, arrays, numbers, and strings; or a compiled nn.Graph.
        path: a directory, or a file open for writing bytes.
        global_dst_rank: for a state with global tensors, the rank that collects their logical values and
            writes the state; None is 0. All ranks must call `save`, which returns when the state is written.

    Raises:
        CheckpointFileError: the object contains an unsupported value, or `path` exists and is not a state
            that can be replaced. The error is also an AssertionError.
    """
    saver = saver_for(type(obj))
    if packed.is_stream(path) and saver is None:
        return packed.pack(lambda directory: _write(obj, directory, global_dst_rank), path)
    if saver is not None:
        return saver(obj, folder.checked_path("flow.save", path))
    directory = folder.checked_path("flow.save", path)
    if not holds_global(obj) and _is_checkpoint(obj):
        return folder.write(directory, obj)
    return _write(obj, directory, global_dst_rank, named=True)


def _write(obj: Any, path: str | os.PathLike, rank: int | None = None, named: bool = False) -> None:
    """Write the directory of a state. named: `path` was a keyword argument, so the order is not checked."""
    if holds_global(obj):
        return save_global(obj, path, rank)
    if callable(getattr(obj, "state_dict", None)):
        name = type(obj).__name__
        raise CheckpointFileError(f"flow.save: a {name} is not saved, its state is",
                                  expected="what state_dict() gives",
                                  got=f"a {name}", fix=f"flow.save({name.lower()}.state_dict(), path), then "
                                  "load_state_dict(flow.load(path))")
    tensors: dict[str, Any] = {}
    tree = _Encoder(tensors).encode(obj, "state")
    if named and not isinstance(obj, Mapping) and not any(isinstance(t, Tensor) for t in tensors.values()):
        raise CheckpointFileError("flow.save: no tensors in it",
                                  expected="a dict, or tensors in lists and tuples",
                                  got=f"{type(obj).__name__} {obj!r}"[:80],
                                  fix="flow.save(model.state_dict(), path)")
    return folder.write(path, tensors, {FILE: json.dumps({"format": FORMAT, "data": tree}, indent=1)},
                        replace=True)


def _is_checkpoint(obj: Any) -> bool:
    """Return True for a state in the form of OneFlow 0.4: named arrays without tensors."""
    arrays = (np.ndarray, np.generic, folder.FileBackendVariableBlob)
    return isinstance(obj, Mapping) and len(obj) > 0 and all(isinstance(v, arrays) for v in obj.values())


class _Encoder:
    """Converts objects to JSON values.

    Tensors are stored in `tensors` by index; a repeated tensor is stored once.
    """

    def __init__(self, tensors: dict[str, Any]):
        self.tensors = tensors
        self.known: dict[int, tuple[str, Any]] = {}

    def encode(self, x: Any, where: str) -> Any:
        kind = type(x)
        if x is None or kind in (bool, int, str):
            return x
        if kind is float:
            return x if math.isfinite(x) else {"float": repr(x)}
        if isinstance(x, Tensor):
            return self.tensor(x, where)
        if isinstance(x, np.ndarray):
            return {"array": self.stored(x)}
        if isinstance(x, (np.bool_, np.integer, np.floating)):
            return self.encode(x.item(), where)
        if isinstance(x, dt.dtype):
            return {"dtype": x.name}
        if kind is list:
            return [self.encode(v, f"{where}[{i}]") for i, v in enumerate(x)]
        if isinstance(x, tuple) and not hasattr(x, "_fields"):
            return {"tuple": [self.encode(v, f"{where}[{i}]") for i, v in enumerate(x)]}
        if kind is OrderedDict or isinstance(x, dict) and not isinstance(x, OrderedDict):
            pairs = [[self.encode(k, f"a key of {where}"), self.encode(v, f"{where}[{k!r}]")]
                     for k, v in x.items()]
            extra = getattr(x, "_metadata", None)
            return {"ordered" if kind is OrderedDict else "dict": pairs,
                    **({} if extra is None else {"_metadata": self.encode(extra, f"{where}._metadata")})}
        raise CheckpointFileError(f"flow.save: {where} is no part of a state",
                                  got=f"{kind.__module__}.{kind.__qualname__}",
                                  expected="tensors, arrays, numbers, strings, None, and dicts, lists and "
                                  "tuples of them",
                                  fix=f"save its state_dict(): flow.save({{...: {where}.state_dict()}}, path)"
                                  if hasattr(x, "state_dict") else "leave it out, or save what it is made of")

    def tensor(self, x: Tensor, where: str) -> dict:
        if x.is_lazy:
            raise CheckpointFileError(f"flow.save: {where} is lazy: a value of an nn.Graph, without data",
                                      expected="an eager tensor", got="a lazy tensor",
                                      fix="save graph.state_dict(), outside build()")
        result: dict[str, Any] = {"tensor": self.stored(x)}
        if isinstance(x, Parameter):
            result["parameter"] = True
        if x.requires_grad:
            result["requires_grad"] = True
        return result

    def stored(self, x: Any) -> str:
        name, _ = self.known.setdefault(id(x), (f"tensor_{len(self.known)}", x))
        self.tensors[name] = x
        return name


def load(path: str | os.PathLike | IO[bytes], global_src_rank: int | None = None, map_location: Any = None, *,
         support_pytorch_format: bool = True) -> Any:
    """Load the object saved at `path`.

    | path | result |
    |---|---|
    | a directory of flow.save(state, path) | the state |
    | an open file of flow.save(state, file), at the current position, or its path | the state |
    | a checkpoint of job functions | {name: variable on disk}, for flow.load_variables |
    | the directory of one variable inside a state or checkpoint | that variable on disk |
    | a file .safetensors (needs the package safetensors) or .npz | {name: tensor} |
    | a file .safetensors.index.json, which lists the shards in the same directory | {name: tensor} |

    Pickles (directories of OneFlow, .pt files of PyTorch) raise an error that suggests another format.

    Args:
        path: the path, or an open file.
        global_src_rank: the only rank that reads. The tensors are then global, with sbp broadcast on a
            placement of this rank, and all ranks must call `load`. With None, each calling rank reads.
        map_location: the device of the tensors; None is the CPU.
        support_pytorch_format: has no effect; .pt files of PyTorch always raise an error.

    Raises:
        CheckpointFileError: the file is missing, damaged, or of another format. The error is also an
            AssertionError.
    """
    source: Any = path
    stream = packed.is_stream(path)
    if not stream:
        folder.checked_path("flow.load", path)
    if global_src_rank is not None:
        return load_global(path, global_src_rank, map_location)
    move = _mover(map_location)
    if stream or os.path.isfile(source):
        file = packed.read_rest(source) if stream else source
        if not packed.is_packed(file):
            return {name: move(as_tensor(a)) for name, a in read_file(file).items()}
        with packed.unpacked(file) as directory:
            try:
                return folder.opened(directory, lambda f: _read(packed.name_of(path), f, move))
            except CheckpointFileError as e:               # replaces the name of the temporary folder
                problem = e.problem.replace(os.fspath(directory), packed.name_of(path))
                raise e.with_texts(problem=problem) from None
    return folder.opened(source, lambda f: _read(source, f, move))


def _read(path: str | os.PathLike, opened: OpenFolder, move: Callable) -> Any:
    if not opened.is_file(FILE):
        refuse_directory(path, opened)
        return folder.read_opened(path, opened)
    if folder.is_partial(path):
        return folder.read_opened(path, opened)      # raises the error
    try:
        with opened.open(FILE) as f:
            result = json.loads(f.read().decode("utf-8"))
        if result["format"] != FORMAT:
            raise ValueError(f"format {result['format']!r}")
        return _Decoder(opened, move).decode(result["data"])
    except FlowError:
        raise
    # a damaged structure makes the decoder raise many classes
    except Exception as e:
        raise CheckpointFileError(f"flow.load: {Path(path, FILE)} cannot be read",
                                  got=f"{type(e).__name__}: {e}"[:200],
                                  expected=f"the structure of a state, {FORMAT!r}",
                                  fix="it is damaged: take another copy") from None


class _Decoder:
    """Converts the JSON values of _Encoder to objects.

    Subclasses that override `variable` and `tensor` pass None for both arguments.
    """

    def __init__(self, opened: OpenFolder | None, move: Callable | None):
        self.opened: Any = opened
        self.move: Any = move
        self.known: dict[str, Any] = {}

    def decode(self, x: Any) -> Any:
        if isinstance(x, list):
            return [self.decode(v) for v in x]
        if not isinstance(x, dict):
            return x
        kind = next(iter(x), None)
        value = x[kind]
        if kind in ("dict", "ordered"):
            cls = dict if kind == "dict" else OrderedDict
            mapping: Any = cls((self.decode(k), self.decode(v)) for k, v in value)
            if "_metadata" in x and kind == "ordered":
                mapping._metadata = self.decode(x["_metadata"])
            return mapping
        if kind == "tuple":
            return tuple(self.decode(v) for v in value)
        if kind == "float":
            return float(value)
        if kind == "dtype":
            return _DTYPES[value]
        if kind == "array":
            return self.variable(value).numpy()
        if kind == "tensor":
            if value not in self.known:
                self.known[value] = self.tensor(x)
            return self.known[value]
        raise ValueError(f"unknown kind {kind!r}")

    def variable(self, name: str) -> folder.FileBackendVariableBlob:
        if not re.fullmatch(r"tensor_\d+", name):
            raise ValueError(f"{name!r} is no name of a tensor")
        return folder.FileBackendVariableBlob(self.opened.path / name, folder=self.opened)

    def tensor(self, x: dict) -> Tensor:
        t = self.move(self.variable(x["tensor"]).tensor())
        needs = bool(x.get("requires_grad"))
        if x.get("parameter"):
            return Parameter(t, needs)
        if needs:
            t.requires_grad = True
        return t


def _mover(map_location: Any) -> Callable[[Tensor], Tensor]:
    if map_location is None or str(map_location).partition(":")[0] == "cpu":
        return lambda t: t
    return lambda t: t.to(map_location)
