"""Where compiled things are kept: `$XDG_CACHE_HOME/flowedu/cuda`, else `~/.cache/flowedu/cuda`."""
from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_folder() -> Path:
    """The folder for what was compiled: the simulator, modules, PyCUDA's wheel."""
    xdg = os.environ.get("XDG_CACHE_HOME")
    return Path(xdg or Path.home() / ".cache", "flowedu", "cuda")


def made_once(kind: str, ending: str, parts: tuple[str, ...], make: Callable[[Path], Path]) -> bytes:
    """What `make(an empty folder)` leaves in the file it returns; or what it once left there for the same `parts`."""
    file = cache_folder() / kind / (hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32] + ending)
    try:
        return file.read_bytes()
    except OSError:
        pass
    with tempfile.TemporaryDirectory() as folder:
        data = make(Path(folder)).read_bytes()
    _keep(file, data)
    return data


def _keep(file: Path, data: bytes) -> None:
    """Writes a file of the cache so that others see all of it or nothing. Where nothing can be written, nothing is kept."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(fd, "wb") as f:
            f.write(data)
        os.replace(temporary, file)
    except OSError:
        pass
