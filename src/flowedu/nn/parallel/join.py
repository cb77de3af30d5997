"""Support for ranks with different numbers of batches (PyTorch's DistributedDataParallel.join).

Before each forward the ranks exchange their next action. A rank without further batches takes part in the
collectives of the others, with zeros as its gradients. At the end all ranks take the parameters of a rank
that worked until the last batch.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from flowedu.errors import CommError
from flowedu.nn.parallel.distributed import Buckets, JoinState

WHAT = "DistributedDataParallel.join"


class Joining(JoinState):
    """State of a module's buckets inside join(). Attributes: share, the factor of each gradient."""

    def __init__(self, buckets: Buckets, by_all: bool, throw: bool):
        self.buckets, self.by_all, self.throw = buckets, by_all, throw
        self.share = 1 / buckets.comm.size

    def exchange(self, works: bool, reduces: bool = False, sends: bool = False) -> np.ndarray:
        """Return three counts of ranks: with a batch, that will reduce gradients, and that send buffers.

        Raises:
            CommError: some rank has no batch left, and `throw` is True.
        """
        counts = self.buckets.comm.all_reduce(np.array([works, reduces, sends], np.int64), what=WHAT)
        if self.throw and 0 < counts[0] < self.buckets.comm.size:
            raise CommError(f"{WHAT}: a rank has no batch left",
                            expected="equally many batches on every rank",
                            got=f"{counts[0]} of {self.buckets.comm.size} ranks with one more",
                            fix="throw_on_early_termination=False lets finished ranks continue with zeros")
        if not self.by_all and counts[0]:
            self.share = 1 / int(counts[0])
        return counts

    def shadow_others(self) -> None:
        """Join the collectives of other ranks until all ranks are done.

        Then take the parameters of a rank that finished last.
        """
        comm, last = self.buckets.comm, True
        while (counts := self.exchange(False))[0]:
            last = False
            if counts[2]:
                self.buckets.send_buffers()
            if counts[1]:
                for b in self.buckets.buckets:
                    b.flat[...] = 0
                    b.arrive = comm.start_all_reduce(b.flat, "DistributedDataParallel")
                for b in self.buckets.buckets:
                    b.arrive()
                    b.arrive = None
        self.buckets.share_all(int(comm.all_reduce(np.array([comm.rank if last else -1]), op="max",
                                                   what=WHAT)[0]))


@contextmanager
def joined(buckets: Buckets | None, by_all: bool, enable: bool, throw: bool) -> Iterator[None]:
    """Return the context of join(). If the block raises an error, join() does not wait for ranks."""
    if buckets is None or not enable:
        yield
        return
    before, buckets.joining = buckets.joining, Joining(buckets, by_all, throw)
    try:
        yield
        buckets.joining.shadow_others()
    finally:
        buckets.joining = before
