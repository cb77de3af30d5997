"""Checkpoints on disk: one directory per variable, in OneFlow's format.

    path/
      snapshot_done            empty; written last
      dense1-weight/out        the elements, little-endian, in C order
      dense1-weight/meta       their shape and type, as protobuf text:  shape {
                                                                          dim: 10
                                                                          dim: 512
                                                                        }
                                                                        data_type: kFloat
    write(path, {name: array})      all or nothing; texts={"state.json": "..."} adds files of text
    read(path) -> {name: FileBackendVariableBlob}

`write` fills a hidden directory next to `path` and renames it at the end, so that neither a crash nor Ctrl-C leaves half
a checkpoint at `path`; what a killed process leaves is that hidden directory, `.NAME.partial-...`, which nothing here
reads, and the next `write` into the same parent removes (saving/partial.py). `read` checks every file's size but loads no
data; `.numpy()` of an entry does. Nothing in a checkpoint is ever executed or unpickled: the worst that a bad file can do
is raise CheckpointFileError.
"""
from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from flowedu.blob import dtype as dt
from flowedu.errors import CheckError, CheckpointError, DTypeError
from flowedu.saving.partial import filling, is_partial

# The names in OneFlow's data_type.proto. kOFRecord (8) and kTensorBuffer (10) hold no plain elements.
_TOKENS = {dt.char: "kChar", dt.float32: "kFloat", dt.float64: "kDouble", dt.int8: "kInt8", dt.int32: "kInt32",
           dt.int64: "kInt64", dt.uint8: "kUInt8", dt.float16: "kFloat16", dt.bool_: "kBool", dt.bfloat16: "kBFloat16"}
_NUMBERS = {"1": "kChar", "2": "kFloat", "3": "kDouble", "4": "kInt8", "5": "kInt32", "6": "kInt64", "7": "kUInt8",
            "9": "kFloat16"}
_DTYPES = {token: d for d, token in _TOKENS.items()}
_DATA, _META, _DONE = "out", "meta", "snapshot_done"
_OURS = {_DONE, "state.json", "model.mlir", "pickled_data"}  # files next to variables; with others no directory is replaced
_NONE: Mapping = MappingProxyType({})
_MAX_META = 1 << 16
_MAX_RANK = 32


class CheckpointFileError(CheckpointError, CheckError):
    """A checkpoint is missing, damaged or in the way. (An AssertionError too: OneFlow asserts these.)"""


class FileBackendVariableBlob:
    """One variable in a checkpoint. Its data stay on disk until `numpy()` is called.

    Args:
        var_dir: the directory with `out` and, in all but the oldest checkpoints, `meta`.
        dtype, shape: both, to read a variable that has no `meta`; else neither.

    Attributes: name; shape, dtype (None without `meta`); file_path, of `out`; has_meta_info.
    """

    def __init__(self, var_dir: str | os.PathLike, dtype: dt.dtype | None = None, shape: tuple[int, ...] | None = None):
        self.var_dir = Path(var_dir)
        if (dtype is None) != (shape is None):
            raise CheckpointFileError(f"{self.var_dir}: both or neither of shape and dtype should be None",
                                      expected="both", got=f"dtype={dtype!r}, shape={shape!r}", fix="give both")
        if not os.path.isfile(self.file_path):
            raise CheckpointFileError(f"{self.var_dir}: not the directory of a variable",
                                      expected=f"a file {_DATA} in it", got="none",
                                      fix="pass a directory that flow.checkpoint.save wrote")
        meta = self.var_dir / _META
        if meta.is_file():
            self.shape, self.dtype = _parse_meta(meta)
        else:
            self.shape, self.dtype = (None if shape is None else tuple(shape)), dtype
        if self.has_meta_info:
            self._check_size(os.path.getsize(self.file_path))

    @property
    def name(self) -> str:
        return self.var_dir.name

    @property
    def file_path(self) -> str:
        return str(self.var_dir / _DATA)

    @property
    def has_meta_info(self) -> bool:
        return self.shape is not None

    def numpy(self) -> np.ndarray:
        """The data, read now, in an array of the caller's own. (bfloat16, which NumPy lacks, as float32.)"""
        if not self.has_meta_info:
            raise CheckpointFileError(f"{self.var_dir}: This variable does not have meta info",
                                      expected=f"a file {_META} next to {_DATA}", got="none, as before OneFlow 0.3",
                                      fix="FileBackendVariableBlob(directory, dtype, shape) tells what is in it")
        with open(self.file_path, "rb") as f:
            self._check_size(os.fstat(f.fileno()).st_size)
            data = np.fromfile(f, (self.dtype.numpy or np.dtype(np.uint16)).newbyteorder("<"), count=prod(self.shape))
        self._check_size(data.nbytes)  # it may have shrunk while it was read
        if self.dtype is dt.bfloat16:
            return (data.astype(np.uint32) << 16).view(np.float32).reshape(self.shape)
        if self.dtype is dt.bool_:
            data = data.view(np.uint8) != 0  # any byte but 0 and 1 would make a bool that is neither
        return data.astype(self.dtype.numpy, copy=False).reshape(self.shape)

    def tensor(self):
        """The data, read now, as a tensor."""
        from flowedu.tensor import from_numpy
        t = from_numpy(self.numpy())
        return t.to(self.dtype) if self.dtype is dt.bfloat16 else t

    def _check_size(self, found: int) -> None:
        expected = prod(self.shape) * self.dtype.bytes
        if found != expected:
            how = "too short" if found < expected else "too long"
            raise CheckpointFileError(f"{self.file_path}: the file is {how}", got=f"{found} bytes",
                                      expected=f"{expected} bytes, for {self.dtype.name} of shape {self.shape}",
                                      fix="it is damaged, or was copied in part: take another copy")

    def __repr__(self) -> str:
        what = f"{self.dtype.name}{list(self.shape)}" if self.has_meta_info else "no meta info"
        return f"<FileBackendVariableBlob {what} in {self.var_dir}>"


def write(path: str | os.PathLike, variables: Mapping[str, Any], texts: Mapping[str, str] = _NONE,
          replace: bool = False) -> None:
    """Writes a checkpoint directory.

    Args:
        path: does not exist yet, or is an empty directory; parents are made.
        variables: {name: ndarray, or an object whose `.numpy()` gives one, asked for one at a time}.
        texts: {file name: content}, UTF-8, next to the variables.
        replace: `path` may be an old checkpoint. It stays as it is until the new one is complete, and nothing of it is in
            the new one. A directory with anything else in it is refused.

    Raises: CheckpointFileError (also an AssertionError) when `path` is taken or a name or value does not fit; OSError
    when the disk is full, say. In every case `path` is what it was before.
    """
    target = Path(os.path.realpath(checked_path("checkpoint.save", path)))
    _check_free(target, path, replace)
    if not isinstance(variables, Mapping):
        raise CheckpointFileError("checkpoint.save: no dictionary of variables", expected="{name: array}",
                                  got=type(variables).__name__, fix='{"dense1-weight": array}')
    for name in (*variables, *texts):
        _check_name(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with filling(target, lambda: _check_free(target, path, replace), replace) as folder:
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        for name, value in variables.items():
            _write_variable(folder, name, value)
        (folder / _DONE).touch()


def read(path: str | os.PathLike) -> dict[str, FileBackendVariableBlob] | FileBackendVariableBlob:
    """The variables of a checkpoint directory by name, without their data; other files in it are ignored.

    A directory that holds one variable (`out` and `meta`) gives that variable alone.
    """
    if not os.path.isdir(checked_path("checkpoint.get", path)):
        raise CheckpointFileError(f"Directory {path} doesn't exist!", expected="a directory of flow.checkpoint.save",
                                  got="a file" if os.path.exists(path) else "nothing there",
                                  fix=f"check the path; the current directory is {os.getcwd()}")
    if os.path.isfile(os.path.join(path, _DATA)):
        return FileBackendVariableBlob(path)
    names = sorted(n for n in os.listdir(path) if os.path.isfile(os.path.join(path, n, _DATA)))
    if is_partial(path) or not names and not os.path.isfile(os.path.join(path, _DONE)):
        inside = [n for n in sorted(os.listdir(path)) if is_complete(os.path.join(path, n))]
        raise CheckpointFileError(f"{path}: not a checkpoint", expected="directories of variables, each with a file out",
                                  got="a save that was interrupted" if is_partial(path) else "none",
                                  fix=f"{os.path.join(path, inside[-1])} is one" if inside else "check the path")
    return {name: FileBackendVariableBlob(os.path.join(path, name)) for name in names}


def is_complete(path: str | os.PathLike) -> bool:
    """Whether `path` is a checkpoint whose save came to its end."""
    return os.path.isfile(os.path.join(path, _DONE)) and not is_partial(path)


def checked_path(what: str, path: Any) -> Any:
    if not isinstance(path, (str, os.PathLike)):
        raise CheckpointFileError(f"{what}: not a path", expected="a str", got=repr(path), fix=f'{what}("./snapshot")')
    return path


def _check_free(target: Path, path: Any, replace: bool = False) -> None:
    where = "checkpoint.save: "
    if target.exists() and not target.is_dir():
        raise CheckpointFileError(f"{where}{path} is a file", expected="a path that is free, or an empty directory",
                                  got="a file", fix="choose another path")
    if target.is_dir() and any(target.iterdir()):
        if not replace:
            raise CheckpointFileError(f"{where}Non-empty directory {path} already exists!",
                                      expected="a path that is free, or an empty directory",
                                      got=f"{len(os.listdir(target))} entries in it", fix="choose another path")
        foreign = sorted(e.name for e in os.scandir(target) if not _written_here(e))
        if foreign:
            raise CheckpointFileError(f"{where}directory {path} holds files that are no checkpoint's", fix="choose another "
                                      "path, or remove it", got=", ".join(foreign[:3]) + ", ..." * (len(foreign) > 3),
                                      expected="a path that is free, an empty directory, or an old checkpoint")
    if target == Path(os.path.realpath(os.getcwd())):
        raise CheckpointFileError(f"{where}{path} is the current directory", expected="a directory of its own",
                                  got="the current directory", fix="save into a new directory in it")


def _written_here(entry: os.DirEntry) -> bool:
    """Whether a checkpoint may have such an entry: a text, or a directory of one variable."""
    if entry.is_dir(follow_symlinks=False):
        return {_DATA} <= set(os.listdir(entry.path)) <= {_DATA, _META}
    return entry.name in _OURS


def _check_name(name: Any) -> None:
    """A variable's name becomes the name of a directory: it must not lead out of the checkpoint."""
    try:
        ok = (isinstance(name, str) and name not in ("", ".", _DONE) and ".." not in name
              and not re.search(r"[/\\\0]", name) and len(name.encode()) <= 255)
    except UnicodeEncodeError:
        ok = False
    if not ok:
        raise CheckpointFileError("checkpoint.save: a variable's name cannot be the name of a directory",
                                  expected='text without "/", "\\" and "..", at most 255 bytes', got=repr(name),
                                  fix='rename the variable; "-" joins the parts of a name')


def _write_variable(root: Path, name: str, value: Any) -> None:
    d = getattr(value, "dtype", None)
    array = value if isinstance(value, (np.ndarray, np.generic)) else _upper_halves(value) if d is dt.bfloat16 else \
        value.numpy() if callable(getattr(value, "numpy", None)) else None
    if not isinstance(array, (np.ndarray, np.generic)):
        raise CheckpointFileError(f"checkpoint.save: variable {name!r} is not an array", got=type(value).__name__,
                                  expected="an ndarray, or an object with numpy()", fix="pass np.array(value)")
    array = np.asarray(array)
    if not isinstance(d, dt.dtype):  # flow.char and flow.int8 are one type to NumPy: the blob's own word counts
        d = None
        with contextlib.suppress(DTypeError):
            d = dt.as_dtype(array.dtype.newbyteorder("="))
    if d not in _TOKENS:
        raise CheckpointFileError(f"checkpoint.save: variable {name!r} has a type that the format lacks",
                                  expected=f"one of {', '.join(d.name for d in _TOKENS)}", got=str(array.dtype),
                                  fix="convert it with .astype")
    folder = root / name
    folder.mkdir()
    with open(folder / _DATA, "wb") as f:
        np.ascontiguousarray(array, (d.numpy or array.dtype).newbyteorder("<")).tofile(f)
    dims = "".join(f"  dim: {n}\n" for n in array.shape)
    (folder / _META).write_text(f"shape {{\n{dims}}}\ndata_type: {_TOKENS[d]}\n", newline="\n")


def _upper_halves(value: Any) -> np.ndarray:
    """The bits of a bfloat16 tensor: those of its float32 are the same and 16 zeros."""
    return (np.asarray(value.float().numpy()).view(np.uint32) >> 16).astype(np.uint16)


def _parse_meta(path: Path) -> tuple[tuple[int, ...], dt.dtype]:
    """(shape, dtype) from protobuf text; whatever is not exactly that raises CheckpointFileError."""
    with open(path, "rb") as f:
        raw = f.read(_MAX_META)
    words = re.findall(r"[{}]|[^\s{}:,;]+", re.sub(r"#.*", "", raw.decode("utf-8", "replace")))
    dims = words[3:-3:2]
    if (words[:2] != ["shape", "{"] or words[-3:-1] != ["}", "data_type"] or words[2:-3:2] != ["dim"] * len(dims)
            or not all(re.fullmatch("[0-9]{1,18}", n) for n in dims) or len(dims) > _MAX_RANK
            or prod(int(n) for n in dims if int(n)) >= 1 << 59):
        raise CheckpointFileError(f"{path}: not the description of a variable", got=repr(raw[:60]),
                                  expected='"shape { dim: 10 dim: 512 } data_type: kFloat"',
                                  fix="it is damaged: take another copy of the checkpoint")
    token = _NUMBERS.get(words[-1], words[-1])
    if token not in _DTYPES:
        raise CheckpointFileError(f"{path}: unknown data_type", expected=f"one of {', '.join(_DTYPES)}", got=token[:60],
                                  fix="remove this variable's directory: flowedu cannot hold such elements")
    return tuple(map(int, dims)), _DTYPES[token]
