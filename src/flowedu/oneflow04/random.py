"""flow.random: seeds, coin flips, and random values for blobs (OneFlow 0.4).

Initial values, dropout, and the functions here differ from run to run unless a seed is set; an op with its
own seed draws the same sequence of values in every run.
"""
from __future__ import annotations

import numpy as np

from flowedu.core.eager.dispatch import connect
from flowedu.core.layers.context import current, gen_seed, set_seed
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.define import REGISTRY as _o
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError, DTypeError, ShapeError
from flowedu.ops.front import front
from flowedu.ops.host import define_host, forget_generators


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
                         shape=lambda batch_size: (batch_size,), dtype=lambda: dt.int8,
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


# ---- drawn for a blob
@front("Bernoulli")
def _bernoulli(x, seed, dtype):
    if not x.dtype.is_floating_point:
        raise DTypeError("random.bernoulli: x does not hold probabilities", expected="float32 or float64", got=x.dtype.name,
                         fix="flow.cast(x, flow.float32)")
    drawn = _o["random_uniform"](shape=x.shape, dtype=x.dtype, seed=seed, draw=0)
    return _o["cast"](_o["less"](drawn, x), dtype=x.dtype if dtype is None else dt.as_dtype(dtype))


def bernoulli(x, seed: int | None = None, dtype=None, name: str | None = "Bernoulli"):
    """Ones and zeros of x's shape: each is 1 with the probability that x has there. dtype: that of x unless given.

    The default name is a constant, as in OneFlow 0.4: a job with two of them must name one.
    """
    return _bernoulli(x, gen_seed() if seed is None else seed, dtype, name=name)


def _order(n: int, seed: int):
    """A random permutation of range(n), int32: the order of n random numbers."""
    return _o["argsort"](_o["random_uniform"](shape=(n,), dtype=dt.float64, seed=seed, draw=0))


def _seed(what: str, seed: int | None, name: str | None) -> int:
    if seed is not None and not name:
        raise CheckError(f"{what}: a seed needs a name", expected="name=... with seed=...",
                         got=f"seed={seed}, name={name!r}",
                         fix=f'{what}(x, seed=1, name="order"), or flow.random.seed(1) for everything')
    return gen_seed() if seed is None else seed


def _check_rows(what: str, value) -> None:
    if not value.ndim:
        raise ShapeError(f"{what}: there are no rows to put in another order", expected="one axis or more",
                         got="a 0-d value", fix="reshape it to (n,)")


@front("RandomBatchPermutationIndices")
def _indices(value, seed):
    _check_rows("random.generate_random_batch_permutation_indices", value)
    return _order(value.shape[0], seed)


def generate_random_batch_permutation_indices(value, seed: int | None = None, name: str | None = None):
    """A random permutation of the positions of value's first axis, int32. A seed asks for a name."""
    return _indices(value, _seed("random.generate_random_batch_permutation_indices", seed, name), name=name)


@front("Shuffle")
def _shuffled(value, seed):
    _check_rows("random.shuffle", value)
    return _o["gather"](value, _order(value.shape[0], seed), axis=0)


def shuffle(value, seed: int | None = None, name: str | None = None):
    """`value` with the parts along its first axis in random order. A seed asks for a name."""
    return _shuffled(value, _seed("random.shuffle", seed, name), name=name)


__all__ = ["CoinFlip", "bernoulli", "coin_flip", "gen_seed", "generate_random_batch_permutation_indices", "seed", "shuffle"]
