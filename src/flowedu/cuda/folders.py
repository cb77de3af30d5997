"""Where compiled things are kept: `$XDG_CACHE_HOME/flowedu/cuda`, else `~/.cache/flowedu/cuda`."""
from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """The folder for what was compiled: the simulator, modules, PyCUDA's wheel."""
    xdg = os.environ.get("XDG_CACHE_HOME")
    return Path(xdg or Path.home() / ".cache", "flowedu", "cuda")


def keep(file: Path, data: bytes) -> None:
    """Writes a file of the cache so that others see all of it or nothing. Where nothing can be written, nothing is kept."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(fd, "wb") as f:
            f.write(data)
        os.replace(temporary, file)
    except OSError:
        pass
