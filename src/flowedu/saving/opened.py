"""OpenFolder: a directory whose contents stay readable, even if a save replaces it meanwhile.

    with OpenFolder("c") as folder:
        with folder.open("w", "out") as f: ...       # c/w/out

Files are opened relative to the directory's descriptor, not by path. A reader holds a shared lock, and
saving/partial.py removes a replaced directory only when no reader has it open. On systems without such locks,
the directory may be removed during a read; `whole` then repeats the read.
"""
from __future__ import annotations

import contextlib
import os
import stat
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from flowedu.saving import partial

_RELATIVE = os.open in os.supports_dir_fd           # False on Windows, where files are opened by path
_TRIES = 100
T = TypeVar("T")


class OpenFolder:
    """Open directory at `path`, which stays open until this object is deleted or the with block ends.

    Raises:
        OSError: `path` is not a readable directory.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self.fd = _open_locked(self.path)
        self._close = weakref.finalize(self, _let_go, self.fd, self.path)

    def open(self, *parts: str) -> BinaryIO:
        """Open a file of the directory for reading; `parts` are the parts of its relative path."""
        return open(os.path.join(*self._from(parts)), "rb", opener=self._open)

    def is_file(self, *parts: str) -> bool:
        try:
            return stat.S_ISREG(os.stat(os.path.join(*self._from(parts)), dir_fd=self.fd).st_mode)
        except (OSError, ValueError):
            return False

    def names(self) -> list[str]:
        return sorted(os.listdir(self.path if self.fd is None else self.fd))

    def replaced(self) -> bool:
        """Return True if the path now refers to another directory or does not exist."""
        return self.fd is not None and not partial.leads_to(self.path, self.fd)

    def _from(self, parts: tuple[str, ...]) -> tuple:
        return parts if self.fd is not None else (self.path, *parts)

    def _open(self, name: str, flags: int) -> int:
        return os.open(name, flags, dir_fd=self.fd)

    def __enter__(self) -> OpenFolder:
        return self

    def __exit__(self, *error: Any) -> None:
        self._close()

    def __deepcopy__(self, memo: dict) -> OpenFolder:
        return self                                  # copies share the open directory

    def __reduce__(self):
        return OpenFolder, (self.path,)


def whole(path: str | os.PathLike, read: Callable[[OpenFolder], T]) -> T:
    """Open the folder at `path` and return read(folder).

    If `read` fails because the folder was replaced and removed meanwhile, `read` is called again with the new
    folder.
    """
    for _ in range(_TRIES):
        folder = OpenFolder(path)
        try:
            return read(folder)
        except Exception:
            if not folder.replaced():
                raise
    with OpenFolder(path) as folder:                 # the folder is replaced continually: raise the error
        return read(folder)


def _open_locked(path: Path) -> int | None:
    """Open and lock (shared) the directory that is at `path` when this function returns."""
    if not _RELATIVE:
        os.scandir(path).close()
        return None
    for _ in range(_TRIES):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            partial.lock(fd, shared=True)
        except BlockingIOError:                      # a writer is about to unlock or remove it
            if partial.leads_to(path, fd):
                time.sleep(0.005)
        except OSError:                              # the system has no locks
            return fd
        except BaseException:
            os.close(fd)
            raise
        else:
            if partial.leads_to(path, fd):
                return fd
        os.close(fd)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)     # another program holds a lock


def _let_go(fd: int | None, path: Path) -> None:
    """Close the directory, and remove it if this is the last reader and it has been replaced."""
    if fd is None:
        return
    left = not partial.leads_to(path, fd)
    os.close(fd)
    if left:
        with contextlib.suppress(OSError):
            partial.clean(path.parent)
