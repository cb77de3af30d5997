"""OpenFolder: reads a directory as it was when it was opened, even if a save replaces it meanwhile.

    with OpenFolder("c") as folder:
        with folder.open("w", "out") as f: ...       # c/w/out

Files are opened relative to the directory itself, not by its path. A reader holds a shared lock, and
`saving/partial.py` removes a replaced directory only when no reader has it open. On systems without such
locks, `whole` reads again.
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

_RELATIVE = os.open in os.supports_dir_fd           # not on Windows: there everything goes by the path
_TRIES = 100
T = TypeVar("T")


class OpenFolder:
    """The directory that is at `path` now, open until this object is freed, or until the end of a with block.

    Raises: OSError if no readable directory exists.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self.fd = _opened(self.path)
        self._close = weakref.finalize(self, _let_go, self.fd, self.path)

    def open(self, *parts: str) -> BinaryIO:
        """The file with this relative name, to be read."""
        return open(os.path.join(*self._from(parts)), "rb", opener=self._open)

    def is_file(self, *parts: str) -> bool:
        return self._is(stat.S_ISREG, parts)

    def is_folder(self, *parts: str) -> bool:
        return self._is(stat.S_ISDIR, parts)

    def names(self) -> list[str]:
        return sorted(os.listdir(self.path if self.fd is None else self.fd))

    def replaced(self) -> bool:
        """Whether something else, or nothing, is at the path now."""
        return self.fd is not None and not partial.leads_to(self.path, self.fd)

    def _from(self, parts: tuple[str, ...]) -> tuple:
        return parts if self.fd is not None else (self.path, *parts)

    def _open(self, name: str, flags: int) -> int:
        return os.open(name, flags, dir_fd=self.fd)

    def _is(self, kind: Callable[[int], bool], parts: tuple[str, ...]) -> bool:
        try:
            return kind(os.stat(os.path.join(*self._from(parts)), dir_fd=self.fd).st_mode)
        except (OSError, ValueError):
            return False

    def __enter__(self) -> OpenFolder:
        return self

    def __exit__(self, *error: Any) -> None:
        self._close()

    def __deepcopy__(self, memo: dict) -> OpenFolder:
        return self                                  # there is one such directory

    def __reduce__(self):
        return OpenFolder, (self.path,)


def whole(path: str | os.PathLike, read: Callable[[OpenFolder], T]) -> T:
    """read(folder at `path`), and again when that fails because the folder was replaced and removed under the reader."""
    for _ in range(_TRIES):
        folder = OpenFolder(path)
        try:
            return read(folder)
        except Exception:
            if not folder.replaced():
                raise
    with OpenFolder(path) as folder:                 # a save without a pause: let its error be seen
        return read(folder)


def _opened(path: Path) -> int | None:
    """A descriptor with a shared lock of the directory that is at `path` when this returns."""
    if not _RELATIVE:
        os.scandir(path).close()
        return None
    for _ in range(_TRIES):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            partial.lock(fd, shared=True)
        except BlockingIOError:                      # the writer is about to unlock, or it is being removed
            if partial.leads_to(path, fd):
                time.sleep(0.005)
        except OSError:                              # there are no locks
            return fd
        except BaseException:
            os.close(fd)
            raise
        else:
            if partial.leads_to(path, fd):
                return fd
        os.close(fd)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)     # locked for other reasons


def _let_go(fd: int | None, path: Path) -> None:
    """Close the directory; the last who does that removes it when it is not at its path any more."""
    if fd is None:
        return
    left = not partial.leads_to(path, fd)
    os.close(fd)
    if left:
        with contextlib.suppress(OSError):
            partial.clean(path.parent)
