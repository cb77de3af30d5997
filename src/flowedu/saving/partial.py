"""Atomic creation of a directory: it is filled under a hidden name and renamed at the end.

    with filling(Path("c")) as folder:           # .c.partial-0123456789ab
        (folder / "a").write_text("...")
    # now it is c

An exception removes it. The next `filling` of the same parent removes directories of killed processes: a
process that fills a directory holds a lock on it, which ends with the process. (If the system or the file
system has no such locks, nothing is removed.)

An old directory at that path can be replaced. It stays unchanged until the new one is complete; then the two
are exchanged. The old one is removed, or, while a reader has it open (saving/opened.py), stays under the
hidden name until that reader is done.
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

from flowedu.errors.files import naming

try:
    import fcntl
except ImportError:                                # not on Windows
    fcntl = None

_MARK = ".partial-"
_NAME = re.compile(rf"\..*{re.escape(_MARK)}[0-9a-f]{{12}}")


def is_partial(path: str | os.PathLike) -> bool:
    """Whether `path` has the name of a directory that is being filled."""
    name = os.path.basename(os.path.normpath(path))
    return name.startswith(".") and _MARK in name


@contextlib.contextmanager
def filling(target: Path, check_free: Callable[[], None], replace: bool = False) -> Iterator[Path]:
    """A new directory that becomes `target` at the end of the with block, and goes away when that raises.

    Args:
        target: free, or an empty directory; its parent exists.
        check_free: raises what is to be raised when `target` has been taken by then.
        replace: `target` may also be a directory with something in it, which goes away at the end.
    """
    clean(target.parent)
    hidden = target.with_name(f".{target.name[:100]}{_MARK}")
    with naming(target, hidden):
        folder, held = _made(target)
    try:
        with naming(target, hidden):
            yield folder
        if replace and target.is_dir() and any(target.iterdir()):
            _exchange(folder, target)
            _unlock(held)  # it may be read now
            held = None
            _remove(folder)  # that is the old one now
            return
        if os.name == "nt" and target.is_dir():
            target.rmdir()  # elsewhere a rename replaces an empty directory
        try:
            os.rename(folder, target)
        except OSError:
            check_free()  # another process was faster
            raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        _unlock(held)


_AT_CWD, _EXCHANGE = -100, 2  # of Linux's renameat2: two names change places, with no moment between


def _exchange(a: Path, b: Path) -> None:
    """Two directories change places; where the system cannot do that at once, in three steps that are undone on failure."""
    if sys.platform == "linux":
        rename = getattr(ctypes.CDLL(None), "renameat2", None)
        if rename is not None and rename(_AT_CWD, os.fsencode(a), _AT_CWD, os.fsencode(b), _EXCHANGE) == 0:
            return
    third = b.parent / f".{b.name[:100]}.old-{os.urandom(6).hex()}"  # no name that _clean removes
    os.rename(b, third)
    try:
        os.rename(a, b)
    except BaseException:
        os.rename(third, b)
        raise
    os.rename(third, a)


def _made(target: Path) -> tuple[Path, int | None]:
    """A new directory, and its lock."""
    while True:
        folder = target.parent / f".{target.name[:100]}{_MARK}{os.urandom(6).hex()}"
        folder.mkdir()
        try:
            held = _locked(folder)
        except (BlockingIOError, FileNotFoundError):  # another process, which cleans up, came between the two lines above
            continue
        except OSError:
            return folder, None
        return folder, held


def clean(parent: Path) -> None:
    """Remove the directories in `parent` that no process fills or reads any more."""
    for entry in list(os.scandir(parent)) if fcntl else ():
        if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):     # it is in use, or there are no locks
                held = _locked(entry.path)
                shutil.rmtree(entry.path, ignore_errors=True)
                _unlock(held)


def _remove(folder: Path) -> None:
    """Remove a replaced directory, unless it is being read; without locks, in any case."""
    held = None
    try:
        held = _locked(folder)
    except BlockingIOError:
        return
    except OSError:
        pass
    shutil.rmtree(folder, ignore_errors=True)
    _unlock(held)


def lock(fd: int, shared: bool = False) -> None:
    """Lock an open directory.

    BlockingIOError: another process has a conflicting lock. Other OSErrors: the system has no locks.
    """
    if fcntl is not None:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def _locked(folder: str | os.PathLike) -> int | None:
    """Lock the directory at a path exclusively, for `_unlock`.

    OSErrors as of `lock`, or if it does not exist.
    """
    if fcntl is None:
        return None
    fd = os.open(folder, os.O_RDONLY)
    try:
        lock(fd)
        if not leads_to(folder, fd):               # it changed places with another one meanwhile
            raise BlockingIOError
    except BaseException:
        os.close(fd)
        raise
    return fd


def leads_to(path: str | os.PathLike, fd: int) -> bool:
    """Whether the open directory is the one at `path`."""
    try:
        there, here = os.stat(path), os.fstat(fd)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _unlock(held: int | None) -> None:
    if held is not None:
        os.close(held)
