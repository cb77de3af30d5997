"""flow.utils.data.distributed: a sampler that splits a data set among processes."""
from __future__ import annotations

import os
from collections.abc import Iterator, Sized

from flowedu.core.sbp.ranks import current
from flowedu.errors import ArgumentError, CommError
from flowedu.tensor.construction.generator import Generator
from flowedu.tensor.construction.random import randperm
from flowedu.utils.data.sampler import Sampler


class DistributedSampler(Sampler):
    """Sampler of every num_replicas-th item, starting at index `rank`.

    Args:
        dataset: data set with a length.
        num_replicas: number of processes; default: the value of flow.env, or a launcher's WORLD_SIZE, or 1.
        rank: index of this process; default: the value of flow.env, or a launcher's RANK, or 0.
        shuffle: use a random order, the same in all processes. Call set_epoch before every epoch.
        seed: seed of the order. The epoch is added to it.
        drop_last: drop the items that remain after an equal split; default: False, repeat the first items.
    """

    def __init__(self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None,
                 shuffle: bool = True, seed: int = 0, drop_last: bool = False):
        if num_replicas is None or rank is None:
            world_size, world_rank = _world()
            replicas = world_size if num_replicas is None else num_replicas
            rank = world_rank if rank is None else rank
        else:
            replicas = num_replicas
        if not 0 <= rank < replicas:
            raise ArgumentError(f"DistributedSampler: Invalid rank {rank}, rank should be in [0, "
                                f"{replicas - 1}]",
                                expected=f"0 to {replicas - 1}", got=str(rank), fix="rank counts from 0")
        self.dataset, self.num_replicas, self.rank = dataset, replicas, rank
        self.shuffle, self.seed = shuffle, seed
        self.drop_last, self.epoch = drop_last, 0
        n = len(dataset)
        self.num_samples = n // replicas if drop_last else -(-n // replicas)
        self.total_size = self.num_samples * replicas

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, which determines the order."""
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
    """Return (number of ranks, this rank). The virtual devices of one process count as one rank."""
    try:
        engine = current()
    except CommError:                                    # the launcher belongs to another library
        return int(os.environ["WORLD_SIZE"]), int(os.environ.get("RANK", 0))
    return (engine.size, engine.rank) if len(engine.owned) == 1 else (1, 0)
