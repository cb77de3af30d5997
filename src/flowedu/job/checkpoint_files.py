"""Checkpoints of sessions: the files are saving/folder.py's; here is what makes an initializer of one."""
from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from flowedu.blob import dtype as dt
from flowedu.saving.folder import CheckpointFileError, FileBackendVariableBlob, checked_path, is_complete, read, write

__all__ = ["CheckpointFileError", "FileBackendVariableBlob", "initializer_from", "is_complete", "read", "write"]


def initializer_from(path: str | os.PathLike, name: str, otherwise: Callable | None) -> Callable | None:
    """An initializer that gives variable `name` the value it has in checkpoint `path`; where the checkpoint lacks it,
    `otherwise`. Raises CheckpointFileError when there is no directory `path`, and when called for another shape or
    dtype than the checkpoint's."""
    if not os.path.isdir(checked_path("default_initialize_with_snapshot_path", path)):
        raise CheckpointFileError(f"default_initialize_with_snapshot_path: Directory {path} doesn't exist!", got="nothing "
                                  "there", expected="a directory of flow.checkpoint.save", fix="check the path", at="")
    folder = os.path.join(path, name)
    if not os.path.isfile(os.path.join(folder, "out")):
        return otherwise

    def initializer(shape: tuple[int, ...], dtype: dt.dtype, seed: int | None = None) -> np.ndarray:
        blob = FileBackendVariableBlob(folder)
        if not blob.has_meta_info:
            blob = FileBackendVariableBlob(folder, dtype, tuple(shape))
        if blob.shape != tuple(shape) or blob.dtype.numpy != dtype.numpy:
            raise CheckpointFileError(f"default_initialize_with_snapshot_path: variable {name} has another shape or dtype",
                                      expected=f"{dtype.name}{list(shape)}, as in the job", at="",
                                      got=f"{blob.dtype.name}{list(blob.shape)} in {folder}",
                                      fix="rename the layer to start it anew, or give it the sizes of the checkpoint")
        return blob.numpy()

    return initializer
