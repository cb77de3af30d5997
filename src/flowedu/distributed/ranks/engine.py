"""The engine of a process: MPI's, or virtual devices."""
from __future__ import annotations

import os
from collections.abc import Callable

from flowedu.core.sbp.ranks import Engine
from flowedu.distributed.ranks.workers import VirtualEngine
from flowedu.errors import CommError


def launched() -> bool:
    """Return True if mpiexec started this process as one of several. Raise CommError for another launcher."""
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE"):
        if int(os.environ.get(name) or 1) > 1:
            return True
    world = os.environ.get("WORLD_SIZE", "")
    if world.isdigit() and int(world) > 1:
        raise CommError(f"flow.distributed: WORLD_SIZE is {world}, but mpiexec did not start this process",
                        expected="the variables mpiexec sets, such as PMI_SIZE", got="none of them",
                        fix=f"python -m flowedu.distributed.launch --nproc_per_node {world} script.py", at="")
    return False


def start(devices: Callable[[], int]) -> Engine:
    """Return the engine of this process: MPI's if mpiexec started it, else one of virtual devices."""
    if launched():
        from flowedu.distributed.mpi.process import start  # which imports mpi4py
        return start()
    return VirtualEngine(devices())
