"""flow.utils.data.distributed: every process of a training its share of the items."""
from __future__ import annotations

import os
from collections.abc import Iterator, Sized

from flowedu.core.sbp.ranks import current
from flowedu.errors import ArgumentError, CommError
from flowedu.tensor.generator import Generator
from flowedu.tensor.random import randperm
from flowedu.utils.data.sampler import Sampler


class DistributedSampler(Sampler):
    """Every num_replicas-th item, beginning with number `rank`.

    Args:
        num_replicas, rank: how many processes there are, and which this is; default: those of flow.env, else the
            environment's WORLD_SIZE and RANK, which a launcher sets, else 1 and 0.
        shuffle: in random order, the same in all processes: it goes by seed + epoch. Call set_epoch before every epoch.
        drop_last: leave out the items that do not divide; default: the first items come again, so that all get as many.
    """

    def __init__(self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
                 seed: int = 0, drop_last: bool = False):
        if num_replicas is None or rank is None:
            size, here = _world()
            replicas, rank = size if num_replicas is None else num_replicas, here if rank is None else rank
        else:
            replicas = num_replicas
        if not 0 <= rank < replicas:
            raise ArgumentError(f"DistributedSampler: Invalid rank {rank}, rank should be in [0, {replicas - 1}]",
                                expected=f"0 to {replicas - 1}", got=str(rank), fix="rank counts from 0")
        self.dataset, self.num_replicas, self.rank = dataset, replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        n = len(dataset)
        self.num_samples = n // replicas if drop_last else -(-n // replicas)
        self.total_size = self.num_samples * replicas

    def set_epoch(self, epoch: int) -> None:
        """The number of the epoch, which the order goes by."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        if self.shuffle:
            order = randperm(n, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        else:
            order = list(range(n))
        return iter([order[i % n] for i in range(self.rank, self.total_size, self.num_replicas)])

    def __len__(self) -> int:
        return self.num_samples


def _world() -> tuple[int, int]:
    """(ranks, this one's number). One that does the work of all its virtual devices reads all items."""
    try:
        engine = current()
    except CommError:                                    # started by another library's launcher
        return int(os.environ["WORLD_SIZE"]), int(os.environ.get("RANK", 0))
    return (engine.size, engine.rank) if len(engine.owned) == 1 else (1, 0)
