"""Cache of compiled files in `$XDG_CACHE_HOME/flowedu/cuda`, else `~/.cache/flowedu/cuda`."""
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
    """Return the folder of compiled files: the simulator, modules, PyCUDA's wheel."""
    xdg = os.environ.get("XDG_CACHE_HOME")
    return Path(xdg or Path.home() / ".cache", "flowedu", "cuda")


def build_once(kind: str, ending: str, parts: tuple[str, ...], make: Callable[[Path], Path],
               saying: str = "") -> bytes:
    """Return the contents of the file that `make(empty folder)` returns, cached on disk by `parts`.

    saying: text that a terminal shows while `make` runs.
    """
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
    """Show a line on stderr while the block runs, if stderr is a terminal.

    FLOWEDU_CUDA_TERMINAL is a file descriptor to use instead, for a process whose stderr is a pipe (the
    simulator's nvcc).
    """
    number = os.environ.get("FLOWEDU_CUDA_TERMINAL")
    shown = (bool(text) and (os.isatty(int(number)) if number else sys.stderr is not None
                             and sys.stderr.isatty()))
    if not shown:
        yield
        return
    descriptor = int(number) if number else sys.stderr.fileno()
    os.write(descriptor, f"\r{text[:78]}".encode())
    try:
        yield
    finally:
        os.write(descriptor, b"\r\x1b[K")


def _keep(file: Path, data: bytes) -> None:
    """Write a file of the cache atomically. Errors are ignored, as the cache is optional."""
    try:
        with replacing(file) as f:
            f.write(data)
    except OSError:
        pass
