"""Checkpoints on disk: one directory per variable, in OneFlow's format.

    path/
      snapshot_done            empty; written last
      dense1-weight/out        the elements, little-endian, in C order
      dense1-weight/meta       their shape and type, as protobuf text:  shape {
                                                                          dim: 10
                                                                          dim: 512
                                                                        }
                                                                        data_type: kFloat
    write(path, {name: array})      atomic; texts={"state.json": "..."} adds text files
    read(path) -> {name: FileBackendVariableBlob}

`write` fills a hidden directory next to `path` and renames it at the end, so that neither a crash nor Ctrl-C
leaves an incomplete checkpoint at `path`. A killed process leaves only the hidden directory,
`.NAME.partial-...`, which the next `write` into the same parent removes (saving/partial.py). `read` checks
every file's size but loads no data. `.numpy()` of an entry loads the data that the directory contained when
`read` was called, even if another checkpoint has replaced the directory since (saving/opened.py). Nothing in
a checkpoint is executed or unpickled, so a bad file can only raise CheckpointFileError.
"""
from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from flowedu.saving.opened import OpenFolder, whole
from flowedu.saving.partial import filling, is_partial
from flowedu.saving.variable import DATA, META, CheckpointFileError, FileBackendVariableBlob, write_variable

_DONE = "snapshot_done"
_OURS = {_DONE, "state.json", "model.mlir", "pickled_data"}  # a directory with other files is not replaced
_NONE: Mapping = MappingProxyType({})
T = TypeVar("T")


def write(path: str | os.PathLike, variables: Mapping[str, Any], texts: Mapping[str, str] = _NONE,
          replace: bool = False) -> None:
    """Write a checkpoint directory.

    Args:
        path: a path that does not exist, or an empty directory. Parents are created.
        variables: {name: value}. A value is an ndarray, or an object whose `.numpy()` returns one. The arrays
            are requested and written one at a time.
        texts: {file name: content}, text files that are written in UTF-8 next to the variables.
        replace: allow `path` to be an old checkpoint, which is replaced when the new one is complete. A
            directory with other contents raises an error.

    Raises:
        CheckpointFileError: `path` exists, or a name or value is not supported. The error is also an
            AssertionError.
        OSError: for example, the disk is full. `path` does not change if an error is raised.
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
            write_variable(folder, name, value)
        (folder / _DONE).touch()


def read(path: str | os.PathLike) -> dict[str, FileBackendVariableBlob] | FileBackendVariableBlob:
    """Return the variables of a checkpoint directory by name, without their data.

    Other files are ignored. If `path` is the directory of one variable (`out` and `meta`), the variable
    itself is returned.
    """
    checked_path("checkpoint.get", path)
    return opened(path, lambda folder: read_opened(path, folder))


def opened(path: str | os.PathLike, read: Callable[[OpenFolder], T]) -> T:
    """Open the directory and return read(directory).

    Raise CheckpointFileError if the directory does not exist. See saving/opened.py.
    """
    try:
        return whole(path, read)
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointFileError(f"Directory {path} doesn't exist!",
                                  expected="a directory of flow.checkpoint.save",
                                  got="a file" if os.path.exists(path) else "nothing there",
                                  fix=f"check the path; the current directory is {os.getcwd()}") from None


def read_opened(path: str | os.PathLike,
                folder: OpenFolder) -> dict[str, FileBackendVariableBlob] | FileBackendVariableBlob:
    if folder.is_file(DATA):
        return FileBackendVariableBlob(path)
    names = [n for n in folder.names() if folder.is_file(n, DATA)]
    if is_partial(path) or not names and not folder.is_file(_DONE):
        inside = [n for n in folder.names() if folder.is_file(n, _DONE) and not is_partial(n)]
        raise CheckpointFileError(f"{path}: not a checkpoint",
                                  expected="directories of variables, each with a file out",
                                  got="a save that was interrupted" if is_partial(path) else "none",
                                  fix=f"{os.path.join(path, inside[-1])} is one" if inside
                                  else "check the path")
    return {name: FileBackendVariableBlob(os.path.join(path, name), folder=folder) for name in names}


def is_complete(path: str | os.PathLike) -> bool:
    """Return True if `path` is a checkpoint whose save was completed.

    Args:
        path: folder, str or path-like object.
    """
    return os.path.isfile(os.path.join(path, _DONE)) and not is_partial(path)


def checked_path(what: str, path: Any) -> Any:
    if not isinstance(path, (str, os.PathLike)):
        raise CheckpointFileError(f"{what}: not a path", expected="a str", got=repr(path),
                                  fix=f'{what}("./snapshot")')
    return path


def _check_free(target: Path, path: Any, replace: bool = False) -> None:
    where = "checkpoint.save: "
    if target.exists() and not target.is_dir():
        raise CheckpointFileError(f"{where}{path} is a file",
                                  expected="a path that is free, or an empty directory",
                                  got="a file", fix="choose another path")
    if target.is_dir() and any(target.iterdir()):
        if not replace:
            raise CheckpointFileError(f"{where}Non-empty directory {path} already exists!",
                                      expected="a path that is free, or an empty directory",
                                      got=f"{len(os.listdir(target))} entries in it",
                                      fix="choose another path")
        foreign = sorted(e.name for e in os.scandir(target) if not _may_be_checkpoint(e))
        if foreign:
            raise CheckpointFileError(f"{where}directory {path} holds files that are no checkpoint's",
                                      expected="a path that is free, an empty directory, or an old "
                                               "checkpoint",
                                      got=", ".join(foreign[:3]) + ", ..." * (len(foreign) > 3),
                                      fix="choose another path, or remove it")
    if target == Path(os.path.realpath(os.getcwd())):
        raise CheckpointFileError(f"{where}{path} is the current directory",
                                  expected="a directory of its own",
                                  got="the current directory", fix="save into a new directory in it")


def _may_be_checkpoint(entry: os.DirEntry) -> bool:
    """Return True if a checkpoint can contain the entry: a text file, or the directory of a variable."""
    if entry.is_dir(follow_symlinks=False):
        return {DATA} <= set(os.listdir(entry.path)) <= {DATA, META}
    return entry.name in _OURS


def _check_name(name: Any) -> None:
    """Check that the name of a variable is valid as the name of a directory inside the checkpoint."""
    try:
        ok = (isinstance(name, str) and name not in ("", ".", _DONE) and ".." not in name
              and not re.search(r"[/\\\0]", name) and len(name.encode()) <= 255)
    except UnicodeEncodeError:
        ok = False
    if not ok:
        raise CheckpointFileError("checkpoint.save: a variable's name cannot be the name of a directory",
                                  expected='text without "/", "\\" and "..", at most 255 bytes',
                                  got=repr(name), fix='rename the variable; "-" joins the parts of a name')
