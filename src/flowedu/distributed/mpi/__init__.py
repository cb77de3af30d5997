"""Ranks that are processes, by MPI.

    mpi, collectives    Comm by messages
    near, lanes         small arrays between ranks of one machine, by shared memory
    process             the engine of a process, its start and end
    watch               how ranks that wait find out that they wait in vain
"""
