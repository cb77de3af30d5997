"""Atomic creation of a directory, which is filled under a hidden name and then renamed.

    with filling(Path("c")) as folder:           # .c.partial-0123456789ab
        (folder / "a").write_text("...")
    # renamed to c

If an exception is raised, the directory is removed. A process that fills a directory holds a lock on it,
which ends with the process. The next `filling` in the same parent removes the unlocked directories of
killed processes. (If the system or the file system has no such locks, nothing is removed.)

An old directory at the path can be replaced. It stays unchanged until the new one is complete, and then the
two are exchanged. The old directory is removed when no reader has it open (saving/opened.py).
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from flowedu.errors.files import naming

try:
    import fcntl as _fcntl
    fcntl: Any = _fcntl
except ImportError:                                # Windows
    fcntl = None

_MARK = ".partial-"
_NAME = re.compile(rf"\..*{re.escape(_MARK)}[0-9a-f]{{12}}")


def is_partial(path: str | os.PathLike) -> bool:
    """Return True if `path` has the name of a directory that is being filled."""
    name = os.path.basename(os.path.normpath(path))
    return name.startswith(".") and _MARK in name


@contextlib.contextmanager
def filling(target: Path, check_free: Callable[[], None], replace: bool = False) -> Iterator[Path]:
    """Yield a new directory that becomes `target` at the end of the with block.

    If the block raises an exception, the new directory is removed.

    Args:
        target: a path that does not exist, or an empty directory; its parent exists.
        check_free: a function that raises an error if another process has created `target` meanwhile.
        replace: `target` may also be a directory that is not empty; it is removed at the end.
    """
    clean(target.parent)
    hidden = target.with_name(f".{target.name[:100]}{_MARK}")
    with naming(target, hidden):
        folder, lock_fd = _create(target)
    try:
        with naming(target, hidden):
            yield folder
        if replace and target.is_dir() and any(target.iterdir()):
            _exchange(folder, target)
            _unlock(lock_fd)  # allows readers to open it
            lock_fd = None
            _remove(folder)  # after the exchange, this is the old directory
            return
        if os.name == "nt" and target.is_dir():
            target.rmdir()  # Windows does not rename to an empty directory
        try:
            os.rename(folder, target)
        except OSError:
            check_free()  # another process was faster
            raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        _unlock(lock_fd)


_AT_CWD, _EXCHANGE = -100, 2  # arguments of Linux's renameat2 for an atomic exchange


def _exchange(a: Path, b: Path) -> None:
    """Exchange two directories.

    If the system has no atomic exchange, use three renames, which are undone on failure.
    """
    if sys.platform == "linux":
        rename = getattr(ctypes.CDLL(None), "renameat2", None)
        if rename is not None and rename(_AT_CWD, os.fsencode(a), _AT_CWD, os.fsencode(b), _EXCHANGE) == 0:
            return
    third = b.parent / f".{b.name[:100]}.old-{os.urandom(6).hex()}"  # not a name that `clean` removes
    os.rename(b, third)
    try:
        os.rename(a, b)
    except BaseException:
        os.rename(third, b)
        raise
    os.rename(third, a)


def _create(target: Path) -> tuple[Path, int | None]:
    """Create a directory and return (path, descriptor of its lock)."""
    while True:
        folder = target.parent / f".{target.name[:100]}{_MARK}{os.urandom(6).hex()}"
        folder.mkdir()
        try:
            lock_fd = _lock_exclusively(folder)
        except (BlockingIOError, FileNotFoundError):  # another process removed it before it was locked
            continue
        except OSError:
            return folder, None
        return folder, lock_fd


def clean(parent: Path) -> None:
    """Remove the hidden directories in `parent` that no process fills or reads."""
    for entry in list(os.scandir(parent)) if fcntl else ():
        if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):     # in use, or no locks available
                lock_fd = _lock_exclusively(entry.path)
                shutil.rmtree(entry.path, ignore_errors=True)
                _unlock(lock_fd)


def _remove(folder: Path) -> None:
    """Remove a replaced directory, unless a reader has locked it."""
    lock_fd = None
    try:
        lock_fd = _lock_exclusively(folder)
    except BlockingIOError:
        return
    except OSError:
        pass
    shutil.rmtree(folder, ignore_errors=True)
    _unlock(lock_fd)


def lock(fd: int, shared: bool = False) -> None:
    """Lock an open directory.

    Raise BlockingIOError if another process has a conflicting lock, and other OSErrors if locks are not
    supported.
    """
    if fcntl is not None:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def _lock_exclusively(folder: str | os.PathLike) -> int | None:
    """Lock the directory at a path exclusively, for `_unlock`.

    Raise OSError as `lock` does, or if the directory does not exist.
    """
    if fcntl is None:
        return None
    fd = os.open(folder, os.O_RDONLY)
    try:
        lock(fd)
        if not leads_to(folder, fd):               # the directories were exchanged meanwhile
            raise BlockingIOError
    except BaseException:
        os.close(fd)
        raise
    return fd


def leads_to(path: str | os.PathLike, fd: int) -> bool:
    """Return True if the open directory is the one at `path`."""
    try:
        at_path, opened = os.stat(path), os.fstat(fd)
    except OSError:
        return False
    return (at_path.st_dev, at_path.st_ino) == (opened.st_dev, opened.st_ino)


def _unlock(lock_fd: int | None) -> None:
    if lock_fd is not None:
        os.close(lock_fd)
