"""flow.config.load_library: a replacement for C++ libraries of ops."""
from __future__ import annotations

from pathlib import Path

from flowedu.errors import FlowError
from flowedu.ops.custom.op import LIBRARIES
from flowedu.ops.custom.record import CUSTOM


class LibraryError(FlowError, FileNotFoundError):
    """A missing replacement of a C++ library."""


def load_library(path: str) -> None:
    """Check that a Python op replaces the C++ ops of a library. flowedu loads no compiled ops.

    Args:
        path: the file of the library. An op replaces it if it is named after the file ("libcube.so": "cube"
            or "cube_forward"), or was registered with library="libcube".

    Raises:
        LibraryError: no op replaces the library. The error is a FileNotFoundError.
    """
    stem = Path(path).name.partition(".")[0]
    for s in (stem, stem.removeprefix("lib")):
        if s in LIBRARIES or s in CUSTOM or f"{s}_forward" in CUSTOM:
            return
    raise LibraryError(f"load_library: no Python op stands in for {Path(path).name}, and flowedu loads no "
                       f"compiled ops",
                       expected=f"a custom op registered before this line, with library={stem!r}",
                       got=", ".join(sorted({*LIBRARIES, *CUSTOM})) or "no custom op",
                       fix=f'flow.custom_op("op_type", forward, backward, library={stem!r}), with NumPy '
                       f'functions')


load_library_now = load_library
