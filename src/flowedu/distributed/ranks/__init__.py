"""Ranks that are threads of one process, and what all engines share (MPI's is in distributed/mpi/).

    base     Comm with every collective, what is checked, how long a rank waits
    identity which global tensor a rank moves
    meet     threads: where ranks meet, and how it is noticed that they cannot
    threads  Comm by shared memory
    workers  a thread for each rank: virtual devices, flow.distributed.spawn
    engine   which engine this process has: MPI's, or workers
    mirror   Comm of a program that does the work of all ranks
"""
