"""Small arrays between ranks of one machine, through shared memory (lanes.pyx).

An MPI message would take longer than the copy of a small array. Whether a call uses shared memory depends
only on the call, so all its ranks make the same choice.
"""
from __future__ import annotations

import numpy as np

from flowedu.distributed.mpi.lanes import HEAD, Lane
from flowedu.distributed.mpi.mpi import Group
from flowedu.distributed.ranks.base import options

CAPACITY = 1 << 13                  # bytes of an array; above, one copy by MPI is cheaper than two
RANKS = 8


class Lanes(dict):
    """{rank: the Lane to it} for the other ranks of this machine.

    All ranks of `world` create their lanes together.
    """

    def __init__(self, MPI, world):
        here = world.Split_type(MPI.COMM_TYPE_SHARED)
        size = 2 * (HEAD + CAPACITY)
        self.window = MPI.Win.Allocate_shared(here.size * size, 1, comm=here)
        rows = [np.frombuffer(self.window.Shared_query(r)[0], np.uint8) for r in range(here.size)]
        rows[here.rank][:] = 0
        here.Barrier()
        ranks = here.group.Translate_ranks(None, world.group)
        for i, rank in enumerate(ranks):
            if i != here.rank:
                boxes = (rows[a][b * size:(b + 1) * size] for a, b in ((here.rank, i), (i, here.rank)))
                self[rank] = Lane(*boxes)

    def reach(self, g: Group, nbytes: int) -> bool:
        """Return True if arrays of this size use lanes."""
        return (nbytes <= CAPACITY and 1 < g.k <= RANKS and all(r in self for r in g.ranks
                                                                if r != g.ranks[g.me]))


class Near:
    """The data that all repetitions of a small call share.

    Attributes:
        g: the group.
        called: the fields of the call.
        what: the description of the latest call.
        tag: the tag of the call.
        steps: for each rank with which this rank exchanges data: its lane, its index in the group, True if
            this index is above that of this rank, and the arrays for its data in the boxes of the lane.
    """

    __slots__ = ("g", "called", "what", "tag", "steps")

    def __init__(self, lanes: Lanes, g: Group, called: tuple, tag: int, numbers: list[int]):
        self.g, self.called, self.what = g, called, called[4]
        self.tag, self.steps = tag, []
        for i in numbers:
            lane = lanes[g.ranks[i]]
            self.steps.append((lane, i, g.me < i, lane.arrays(*called[2:4])))

    def enter(self, comm, what: str) -> None:
        """Record that this rank makes the call."""
        g = self.g
        if what is not self.what:
            self.called, self.what = (*self.called[:4], what), what
        if options.debug or comm.broken:
            comm._begin(g.ranks, *self.called, True)
        else:
            g.number += 1
            g.called, g.identity = self.called, comm.identity
