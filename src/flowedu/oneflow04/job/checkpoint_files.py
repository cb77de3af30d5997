"""Initializers that read checkpoints. saving/folder.py reads and writes the files."""
from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from flowedu.core.values import dtype as dt
from flowedu.saving.folder import (
    CheckpointFileError,
    FileBackendVariableBlob,
    checked_path,
    is_complete,
    read,
    write,
)
from flowedu.saving.opened import OpenFolder

__all__ = ["CheckpointFileError", "FileBackendVariableBlob", "initializer_from", "is_complete", "read",
           "snapshot", "write"]


def initializer_from(path: str | os.PathLike | OpenFolder, name: str,
                     otherwise: Callable | None) -> Callable | None:
    """Return an initializer with the value of variable `name` in a checkpoint; `otherwise` if it is missing.

    If `path` is an OpenFolder, all variables are read from the same checkpoint.

    Raises:
        CheckpointFileError: `path` is not a directory. The initializer also raises this error if the shape or
            dtype of the variable differs from that in the checkpoint.
    """
    opened = path if isinstance(path, OpenFolder) else snapshot(path)
    if not opened.is_file(name, "out"):
        return otherwise
    folder = opened.path / name

    def initializer(shape: tuple[int, ...], dtype: dt.dtype, seed: int | None = None) -> np.ndarray:
        blob = FileBackendVariableBlob(folder, folder=opened)
        if not blob.has_meta_info:
            blob = FileBackendVariableBlob(folder, dtype, tuple(shape), opened)
        if blob.shape != tuple(shape) or blob.dtype.numpy != dtype.numpy:
            raise CheckpointFileError(f"default_initialize_with_snapshot_path: variable {name} has another "
                                      f"shape or dtype",
                                      expected=f"{dtype.name}{list(shape)}, as in the job", at="",
                                      got=f"{blob.dtype.name}{list(blob.shape)} in {folder}",
                                      fix="rename the layer to start it anew, or give it the sizes of the "
                                      "checkpoint")
        return blob.numpy()

    return initializer


def snapshot(path: str | os.PathLike) -> OpenFolder:
    """Open the directory that default_initialize_with_snapshot_path names."""
    try:
        return OpenFolder(checked_path("default_initialize_with_snapshot_path", path))
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointFileError(f"default_initialize_with_snapshot_path: Directory {path} doesn't exist!",
                                  got="nothing there", expected="a directory of flow.checkpoint.save",
                                  fix="check the path", at="") from None
