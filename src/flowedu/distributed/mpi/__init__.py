"""Ranks that are processes, with MPI.

mpi, collectives    Comm with messages
near, lanes         small arrays between ranks of one machine, with shared memory
process             the engine of a process, its start and end
watch               detection of deadlocks by waiting ranks
"""
