"""flow.random.bernoulli and shuffle (OneFlow 0.4). Other numbers in every run; with a seed, the same row of them again."""
from __future__ import annotations

from flowedu import ops
from flowedu.core.layers.context import gen_seed
from flowedu.core.layers.frontend import front
from flowedu.core.values import dtype as dt
from flowedu.errors import CheckError, DTypeError, ShapeError

_o = ops.REGISTRY


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


__all__ = ["bernoulli", "generate_random_batch_permutation_indices", "shuffle"]
