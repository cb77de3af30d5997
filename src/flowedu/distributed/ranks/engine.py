"""The engine of a process: MPI's, or virtual devices."""
from __future__ import annotations

import os
from collections.abc import Callable

from flowedu.core.sbp.ranks import Engine
from flowedu.distributed.ranks.workers import VirtualEngine


def launched() -> bool:
    """Return True if mpiexec started this process as one of several."""
    return any(int(os.environ.get(name) or 1) > 1
               for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE"))


def start(devices: Callable[[], int]) -> Engine:
    """Return the engine of this process: MPI's if it is one of several ranks, else one of virtual devices.

    mpiexec started the ranks, or a user started each in a terminal, with WORLD_SIZE and RANK.
    """
    world, local = os.environ.get("WORLD_SIZE", ""), os.environ.get("LOCAL_RANK", "")
    by_hand = not launched() and world.isdigit() and int(world) > 1
    if by_hand:
        from flowedu.distributed.terminals import connect
        connect(int(world))
    elif not launched():
        return VirtualEngine(devices())
    from flowedu.distributed.mpi.process import start  # which imports mpi4py
    engine = start()
    if by_hand and local.isdigit():
        engine.local_rank = int(local)
    return engine
