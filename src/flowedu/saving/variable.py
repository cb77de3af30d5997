"""One variable of a checkpoint on disk: a directory with `out` and `meta` (see saving/folder.py)."""
from __future__ import annotations

import contextlib
import os
import re
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from flowedu.core.values import dtype as dt
from flowedu.errors import CheckError, CheckpointError, DTypeError
from flowedu.saving.opened import OpenFolder

# The names in OneFlow's data_type.proto, without kOFRecord (8) and kTensorBuffer (10), which are not numeric.
_TOKENS = {dt.char: "kChar", dt.float32: "kFloat", dt.float64: "kDouble", dt.int8: "kInt8",
           dt.int32: "kInt32",
           dt.int64: "kInt64", dt.uint8: "kUInt8", dt.float16: "kFloat16", dt.bool_: "kBool",
           dt.bfloat16: "kBFloat16", dt.int16: "kInt16"}
_NUMBERS = {"1": "kChar", "2": "kFloat", "3": "kDouble", "4": "kInt8", "5": "kInt32", "6": "kInt64",
            "7": "kUInt8", "9": "kFloat16"}
_DTYPES = {token: d for d, token in _TOKENS.items()}
DATA, META = "out", "meta"
_MAX_META = 1 << 16
_MAX_RANK = 32


class CheckpointFileError(CheckpointError, CheckError):
    """Error for a checkpoint that is missing, damaged, or would be overwritten.

    It is also an AssertionError, the error of OneFlow.
    """


class FileBackendVariableBlob:
    """One variable in a checkpoint. Its data stay on disk until `numpy()` is called.

    Args:
        var_dir: the directory with `out` and, in all but the oldest checkpoints, `meta`.
        dtype: the dtype, for a variable without `meta`; else None.
        shape: the shape, for a variable without `meta`; else None.
        folder: the open directory that contains the variable, or None.

    Attributes:
        name: the name of the variable.
        shape, dtype: None without `meta`.
        file_path: the path of `out`.
        has_meta_info: True if `meta` exists.
    """

    def __init__(self, var_dir: str | os.PathLike, dtype: dt.dtype | None = None,
                 shape: tuple[int, ...] | None = None, folder: OpenFolder | None = None):
        self.var_dir = Path(var_dir)
        if (dtype is None) != (shape is None):
            raise CheckpointFileError(f"{self.var_dir}: both or neither of shape and dtype should be None",
                                      expected="both", got=f"dtype={dtype!r}, shape={shape!r}",
                                      fix="give both")
        self._inside = () if folder is None else (self.var_dir.name,)     # path in the folder
        opened = self._open_parent() if folder is None else folder
        if opened is None or not opened.is_file(*self._inside, DATA):
            raise CheckpointFileError(f"{self.var_dir}: not the directory of a variable",
                                      expected=f"a file {DATA} in it", got="none",
                                      fix="pass a directory that flow.checkpoint.save wrote")
        self._folder = opened
        # Without `meta` and arguments, the shape and the dtype are None, and the data cannot be read.
        self.shape: Any
        self.dtype: Any
        if opened.is_file(*self._inside, META):
            with self._file(META) as f:
                self.shape, self.dtype = _parse_meta(self.var_dir / META, f.read(_MAX_META))
        else:
            self.shape, self.dtype = (None if shape is None else tuple(shape)), dtype
        if self.has_meta_info:
            with self._file(DATA) as f:
                self._check_size(os.fstat(f.fileno()).st_size)

    def _open_parent(self) -> OpenFolder | None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return OpenFolder(self.var_dir)
        return None

    def _file(self, name: str) -> BinaryIO:
        try:
            return self._folder.open(*self._inside, name)
        except FileNotFoundError:
            raise CheckpointFileError(f"{self.var_dir / name}: the file was removed since it was found",
                                      expected="the checkpoint, as long as variables are read from it",
                                      got="none", fix="read the values (.numpy()) before the checkpoint goes "
                                                      "away") from None

    @property
    def name(self) -> str:
        return self.var_dir.name

    @property
    def file_path(self) -> str:
        return str(self.var_dir / DATA)

    @property
    def has_meta_info(self) -> bool:
        return self.shape is not None

    def numpy(self) -> np.ndarray:
        """Read the data into a new array; bfloat16 is converted to float32, because NumPy has no bfloat16."""
        if not self.has_meta_info:
            raise CheckpointFileError(f"{self.var_dir}: This variable does not have meta info",
                                      expected=f"a file {META} next to {DATA}",
                                      got="none, as before OneFlow 0.3",
                                      fix="FileBackendVariableBlob(directory, dtype, shape) tells what "
                                      "is in it")
        with self._file(DATA) as f:
            self._check_size(os.fstat(f.fileno()).st_size)
            data = np.fromfile(f, (self.dtype.numpy or np.dtype(np.uint16)).newbyteorder("<"),
                               count=prod(self.shape))
        self._check_size(data.nbytes)  # the file may have been truncated while it was read
        if self.dtype is dt.bfloat16:
            return (data.astype(np.uint32) << 16).view(np.float32).reshape(self.shape)
        if self.dtype is dt.bool_:
            data = data.view(np.uint8) != 0  # bytes other than 0 and 1 would be invalid bools
        return data.astype(self.dtype.numpy, copy=False).reshape(self.shape)

    def tensor(self):
        """Read the data and return them as a tensor."""
        from flowedu.tensor import from_numpy
        t = from_numpy(self.numpy())
        return t.to(self.dtype) if self.dtype is dt.bfloat16 else t

    def _check_size(self, size: int) -> None:
        expected = prod(self.shape) * self.dtype.bytes
        if size != expected:
            how = "too short" if size < expected else "too long"
            raise CheckpointFileError(f"{self.file_path}: the file is {how}", got=f"{size} bytes",
                                      expected=f"{expected} bytes, for {self.dtype.name} of shape "
                                      f"{self.shape}",
                                      fix="it is damaged, or was copied in part: take another copy")

    def __repr__(self) -> str:
        what = f"{self.dtype.name}{list(self.shape)}" if self.has_meta_info else "no meta info"
        return f"<FileBackendVariableBlob {what} in {self.var_dir}>"


def _as_array(value: Any, dtype: Any) -> np.ndarray | np.generic | None:
    """Return the NumPy array of a value, or None if it has none."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value
    if dtype is dt.bfloat16:
        from flowedu.tensor.dtypes.bfloat16 import bits_of
        return bits_of(value)
    return value.numpy() if callable(getattr(value, "numpy", None)) else None


def write_variable(root: Path, name: str, value: Any) -> None:
    inner = getattr(value, "tensor", None)               # a variable of a session
    value = inner if hasattr(inner, "_on_host") else value
    dtype = getattr(value, "dtype", None)
    array = _as_array(value._on_host() if hasattr(value, "_on_host") else value, dtype)
    if not isinstance(array, (np.ndarray, np.generic)):
        raise CheckpointFileError(f"checkpoint.save: variable {name!r} is not an array",
                                  got=type(value).__name__,
                                  expected="an ndarray, or an object with numpy()",
                                  fix="pass np.array(value)")
    array = np.asarray(array)
    if not isinstance(dtype, dt.dtype):  # NumPy's int8 is ambiguous (flow.char, flow.int8)
        dtype = None
        with contextlib.suppress(DTypeError):
            dtype = dt.as_dtype(array.dtype.newbyteorder("="))
    if dtype not in _TOKENS:
        raise CheckpointFileError(f"checkpoint.save: variable {name!r} has a type that the format lacks",
                                  expected=f"one of {', '.join(d.name for d in _TOKENS)}",
                                  got=str(array.dtype), fix="convert it with .astype")
    folder = root / name
    folder.mkdir()
    with open(folder / DATA, "wb") as f:
        plain = np.ascontiguousarray(array, (dtype.numpy or array.dtype).newbyteorder("<"))
        f.write(plain.reshape(-1).view(np.uint8).data)       # tofile raises OSErrors without an errno
    dims = "".join(f"  dim: {n}\n" for n in array.shape)
    (folder / META).write_text(f"shape {{\n{dims}}}\ndata_type: {_TOKENS[dtype]}\n", newline="\n",
                               encoding="utf-8")


def _parse_meta(path: Path, raw: bytes) -> tuple[tuple[int, ...], dt.dtype]:
    """Return (shape, dtype) from protobuf text. Other text raises CheckpointFileError, which names `path`."""
    words = re.findall(r"[{}]|[^\s{}:,;]+", re.sub(r"#.*", "", raw.decode("utf-8", "replace")))
    dims = words[3:-3:2]
    if (words[:2] != ["shape", "{"] or words[-3:-1] != ["}", "data_type"]
        or words[2:-3:2] != ["dim"] * len(dims)
            or not all(re.fullmatch("[0-9]{1,18}", n) for n in dims) or len(dims) > _MAX_RANK
            or prod(int(n) for n in dims if int(n)) >= 1 << 59):
        raise CheckpointFileError(f"{path}: not the description of a variable", got=repr(raw[:60]),
                                  expected='"shape { dim: 10 dim: 512 } data_type: kFloat"',
                                  fix="it is damaged: take another copy of the checkpoint")
    token = _NUMBERS.get(words[-1], words[-1])
    if token not in _DTYPES:
        raise CheckpointFileError(f"{path}: unknown data_type", expected=f"one of {', '.join(_DTYPES)}",
                                  got=token[:60],
                                  fix="remove this variable's directory: flowedu cannot hold such elements")
    return tuple(map(int, dims)), _DTYPES[token]
