"""Which engine a process has: MPI's, or virtual devices."""
from __future__ import annotations

import os
from collections.abc import Callable

from flowedu.core.sbp.ranks import Engine
from flowedu.distributed.ranks.workers import VirtualEngine
from flowedu.errors import CommError


def launched() -> bool:
    """Whether this process is one of several that mpiexec started. CommError where a launcher of another kind did."""
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
    """The engine of this process: MPI's where mpiexec started it, otherwise so many virtual devices."""
    if launched():
        from flowedu.distributed.mpi.process import start  # which imports mpi4py
        return start()
    return VirtualEngine(devices())
