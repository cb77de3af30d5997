"""Where compiled things are kept: `$XDG_CACHE_HOME/flowedu/cuda`, else `~/.cache/flowedu/cuda`."""
from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from flowedu.errors.files import replacing


def cache_folder() -> Path:
    """The folder for what was compiled: the simulator, modules, PyCUDA's wheel."""
    xdg = os.environ.get("XDG_CACHE_HOME")
    return Path(xdg or Path.home() / ".cache", "flowedu", "cuda")


def made_once(kind: str, ending: str, parts: tuple[str, ...], make: Callable[[Path], Path], saying: str = "") -> bytes:
    """What `make(an empty folder)` leaves in the file it returns; or what it once left there for the same `parts`.

    saying: what a terminal shows while it is made."""
    file = cache_folder() / kind / (hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32] + ending)
    try:
        return file.read_bytes()
    except OSError:
        pass
    with waiting(saying), tempfile.TemporaryDirectory() as folder:
        data = make(Path(folder)).read_bytes()
    _keep(file, data)
    return data


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Shows a line on stderr as long as the block runs, where that is a terminal.

    FLOWEDU_CUDA_TERMINAL: the number of a file to ask instead, for one whose stderr is read (the simulator's nvcc).
    """
    number = os.environ.get("FLOWEDU_CUDA_TERMINAL")
    shown = bool(text) and (os.isatty(int(number)) if number else sys.stderr is not None and sys.stderr.isatty())
    if not shown:
        yield
        return
    where = int(number) if number else sys.stderr.fileno()
    os.write(where, f"\r{text[:78]}".encode())
    try:
        yield
    finally:
        os.write(where, b"\r\x1b[K")


def _keep(file: Path, data: bytes) -> None:
    """Writes a file of the cache so that others see all of it or nothing. Where nothing can be written, nothing is kept."""
    try:
        with replacing(file) as f:
            f.write(data)
    except OSError:
        pass
