"""Ranks and the messages between them. One interface, `Comm`, and three engines (MPI's is in distributed/mpi/).

    base     Engine, Comm, and which engine this thread works with
    meet     threads: where ranks meet, and how it is noticed that they cannot
    threads  Comm by shared memory
    workers  a thread for each rank: virtual devices, flow.distributed.spawn
    mirror   Comm of a program that does the work of all ranks

A world has `size` ranks. An engine *owns* those whose work this thread does: all of them (virtual devices), or one (a
thread of flow.distributed.spawn, a process of MPI).
"""
from flowedu.core.sbp.ranks.base import Comm, Engine, current, options, set_virtual_devices, use
