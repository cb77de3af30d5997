"""Ranks as threads of one process, and the code shared by all engines (MPI's is in distributed/mpi/).

base     Comm with every collective, the checks, and the timeouts
identity identity of a global tensor across ranks
meet     threads: rendezvous of ranks, and detection of deadlocks
threads  Comm with shared memory
workers  a thread for each rank: virtual devices, flow.distributed.spawn
engine   the engine of this process: MPI's, or workers
mirror   Comm of a program that does the work of all ranks
"""
