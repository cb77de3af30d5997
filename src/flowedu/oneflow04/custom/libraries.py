"""flow.config.load_library: a replacement for C++ libraries of ops."""
from __future__ import annotations

from pathlib import Path

from flowedu.errors import FlowError
from flowedu.ops.custom.op import LIBRARIES
from flowedu.ops.custom.record import CUSTOM


class LibraryError(FlowError, FileNotFoundError):
    """A C++ library that nothing stands in for."""


def load_library(path: str) -> None:
    """flowedu loads no C++ ops: a Python op registered for the library does their work.

    Raises FileNotFoundError unless a custom op is named after the file ("libcube.so": "cube" or "cube_forward"), or was
    registered with library="libcube".
    """
    stem = Path(path).name.partition(".")[0]
    for s in (stem, stem.removeprefix("lib")):
        if s in LIBRARIES or s in CUSTOM or f"{s}_forward" in CUSTOM:
            return
    raise LibraryError(f"load_library: no Python op stands in for {Path(path).name}, and flowedu loads no compiled ops",
                       expected=f"a custom op registered before this line, with library={stem!r}",
                       got=", ".join(sorted({*LIBRARIES, *CUSTOM})) or "no custom op",
                       fix=f'flow.custom_op("op_type", forward, backward, library={stem!r}), with NumPy functions')


load_library_now = load_library
