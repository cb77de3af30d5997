"""Seeds, coin flips, and random values for blobs: flow.random of OneFlow 0.4.

Initial values, dropout, and the functions here differ from run to run unless a seed is set. An op with its
own seed draws the same sequence of values in every run.
"""
from __future__ import annotations

import numpy as np

from flowedu.core.eager.dispatch import connect
from flowedu.core.layers.context import current, gen_seed, set_seed
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.elementwise import less
from flowedu.core.ops.view import cast
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError, DTypeError, ShapeError
from flowedu.ops.front import front
from flowedu.ops.host import define_host, forget_generators
from flowedu.ops.index import gather
from flowedu.ops.order import argsort
from flowedu.ops.random import random_uniform


def seed(value: int | None) -> None:
    """Seed all later random values.

    Random ops in eager mode start over. A compiled job keeps the seeds with which it was compiled.

    Args:
        value: an int, or None for different values in every run.
    """
    set_seed(value)
    forget_generators()


connect(seed=set_seed)                                   # flow.manual_seed seeds both generations


def seed_of(given: int | None) -> int | None:
    """Return the seed of an op with a random state: `given`, or a new one in a graph.

    Outside graphs the result is None if no seed is given. Each call of the op then draws a seed, so that it
    depends on flow.random.seed.
    """
    return gen_seed() if given is None and current_interpreter() is not None else given


def name_once(name: str | None) -> str | None:
    """Return `name` for the first op of a job with this name, and None (a numbered name) for later ones.

    The default names of random ops with a state are constants, but a job may have several such ops, as in
    OneFlow.
    """
    context = current()
    return None if name and context.full_name(name) in getattr(context, "blobs", ()) else name


def _check(batch_size, probability):
    if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
        raise ArgumentError("CoinFlip: batch_size is not a number of coins", expected="an int of 1 or more",
                            got=repr(batch_size), fix="batch_size=32")
    if not 0 <= probability <= 1:
        raise ArgumentError("CoinFlip: probability is not a probability",
                            expected="0 <= probability <= 1, that of a 1",
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
    """Return random ones and zeros, for example to choose the images to mirror.

    Args:
        batch_size: the number of values.
        seed: the seed of the sequence; None derives it from flow.random.seed.
        probability: the probability of a 1.
        name: the name of the op.

    Returns: int8 of shape (batch_size,). The values differ in every run.
    """
    return _coins(batch_size, probability, seed, name=name_once(name))


coin_flip = CoinFlip


# ---- random values in the shape of a blob
@front("Bernoulli")
def _bernoulli(x, seed, dtype):
    if not x.dtype.is_floating_point:
        raise DTypeError("random.bernoulli: x does not hold probabilities", expected="float32 or float64",
                         got=x.dtype.name, fix="flow.cast(x, flow.float32)")
    drawn = random_uniform(shape=x.shape, dtype=x.dtype, seed=seed, draw=0)
    return cast(less(drawn, x), dtype=x.dtype if dtype is None else dt.as_dtype(dtype))


def bernoulli(x, seed: int | None = None, dtype=None, name: str | None = "Bernoulli"):
    """Return ones and zeros that are 1 with the probabilities in `x`.

    Args:
        x: a blob of probabilities, float32 or float64.
        seed: the seed; None derives it from flow.random.seed.
        dtype: the dtype of the result; None takes that of `x`.
        name: the name of the op. The default is a constant, as in OneFlow 0.4: a job with two such ops must
            name one.
    """
    return _bernoulli(x, gen_seed() if seed is None else seed, dtype, name=name)


def _order(n: int, seed: int):
    """Return a random permutation of range(n) as int32."""
    return argsort(random_uniform(shape=(n,), dtype=dt.float64, seed=seed, draw=0))


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
    """Return a random permutation of the indices of the first axis, as int32.

    Args:
        value: a blob with at least one axis.
        seed: the seed; None derives it from flow.random.seed. A seed requires a `name`.
    """
    return _indices(value, _seed("random.generate_random_batch_permutation_indices", seed, name), name=name)


@front("Shuffle")
def _shuffle_rows(value, seed):
    _check_rows("random.shuffle", value)
    return gather(value, _order(value.shape[0], seed), axis=0)


def shuffle(value, seed: int | None = None, name: str | None = None):
    """Return `value` with the parts along its first axis in random order.

    Args:
        value: a blob with at least one axis.
        seed: the seed; None derives it from flow.random.seed. A seed requires a `name`.
    """
    return _shuffle_rows(value, _seed("random.shuffle", seed, name), name=name)


__all__ = ["CoinFlip", "bernoulli", "coin_flip", "gen_seed", "generate_random_batch_permutation_indices",
           "seed", "shuffle"]
