"""flow.random: seeds, and coins. Initial values, dropout and coins differ from run to run unless a seed is set."""
from __future__ import annotations

import numpy as np

from flowedu.core.layers.context import current, gen_seed, set_seed
from flowedu.core.layers.frontend import front
from flowedu.core.ops.dispatch import connect, current_interpreter
from flowedu.core.ops.host import define_host, forget_generators
from flowedu.core.values.dtype import int8
from flowedu.errors import ArgumentError
from flowedu.oneflow04.random_ops import bernoulli, generate_random_batch_permutation_indices, shuffle


def seed(value: int | None) -> None:
    """Make everything random that is made from now on reproducible (None: different every time). Random ops called eagerly
    start over; a compiled job goes on with the seeds it was made with."""
    set_seed(value)
    forget_generators()


connect(seed=set_seed)                                   # flow.manual_seed seeds both generations


def seed_of(given: int | None) -> int | None:
    """The seed of an op that keeps a random state: `given`; else, in a graph, one that is fixed now. Outside graphs None:
    every call draws one, so that it follows flow.random.seed."""
    return gen_seed() if given is None and current_interpreter() is not None else given


def name_once(name: str | None) -> str | None:
    """`name` for the first op of a job that has it, None (a numbered name) for the next. The names of random ops that
    keep a state are constants by default, and as in OneFlow a job may have several such ops."""
    context = current()
    return None if name and context.full_name(name) in getattr(context, "blobs", ()) else name


def _check(batch_size, probability):
    if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
        raise ArgumentError("CoinFlip: batch_size is not a number of coins", expected="an int of 1 or more",
                            got=repr(batch_size), fix="batch_size=32")
    if not 0 <= probability <= 1:
        raise ArgumentError("CoinFlip: probability is not a probability", expected="0 <= probability <= 1, that of a 1",
                            got=repr(probability), fix="probability=0.5")


def _flip(state, batch_size, probability):
    rng = np.random.default_rng(gen_seed()) if state is None else state
    return (rng.random(batch_size) < probability).astype(np.int8)


_coin_flip = define_host("coin_flip(*, batch_size, probability, seed) -> out", host=_flip, check=_check,
                         shape=lambda batch_size: (batch_size,), dtype=lambda: int8,
                         state=lambda seed: None if seed is None else np.random.default_rng(seed),
                         doc="int8 ones and zeros, one with the given probability.")


@front("CoinFlip", "out")
def _coins(batch_size, probability, seed):
    return _coin_flip(batch_size=batch_size, probability=probability, seed=seed_of(seed))


def CoinFlip(batch_size: int = 1, seed: int | None = None, probability: float = 0.5, name: str = "CoinFlip"):
    """int8 (batch_size,): 1 with `probability`, else 0. Which pictures to mirror, say. Others in every run; the same row
    again for the same seed (default: from flow.random.seed). (OneFlow 0.2 to 0.4)"""
    return _coins(batch_size, probability, seed, name=name_once(name))


coin_flip = CoinFlip

__all__ = ["CoinFlip", "bernoulli", "coin_flip", "gen_seed", "generate_random_batch_permutation_indices", "seed", "shuffle"]
