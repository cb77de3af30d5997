"""Helpers shared by the distributions: broadcast parameters, lazily computed attributes, and sampling."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.ops.promote import cast, default_float, is_number
from flowedu.distributions.special import safe_log, safe_log1p
from flowedu.errors import ArgumentError, NotATensorError
from flowedu.tensor import Size, enable_grad
from flowedu.tensor.construction.creation import tensor
from flowedu.tensor.construction.generator import default_generator
from flowedu.tensor.construction.random import normal_of, uniform_of
from flowedu.tensor.devices.conversion import beside, use_device_of
from flowedu.tensor.dtypes.numeric_limits import finfo
from flowedu.tensor.indexing.nonzero_positions import data
from flowedu.tensor.shapes.reshape_and_permute import broadcast_tensors

euler_constant = 0.57721566490153286060                  # Euler and Mascheroni's


def broadcast_all(*values):
    """Return numbers and tensors as tensors of one shape; numbers get the dtype of the first tensor."""
    for v in values:
        if not (isinstance(v, TensorBase) or is_number(v)):
            raise NotATensorError("distributions", v, "a parameter")
    first = next((v for v in values if isinstance(v, TensorBase)), None)
    kind = default_float() if first is None else first.dtype

    def to_tensor(v):
        if isinstance(v, TensorBase):
            return v
        return tensor(v, dtype=kind) if first is None else beside(tensor(v, dtype=kind), first)

    return tuple(broadcast_tensors(*map(to_tensor, values)))


def as_size(shape: Any) -> Size:
    """Return a number, tuple, or Size as a Size."""
    return Size((shape,) if isinstance(shape, int) else tuple(shape))


def one_of(what: str, **given: Any) -> str:
    """Return the name of the only argument that is not None.

    Raise ArgumentError if all arguments are None, or more than one is not None.
    """
    names = [n for n, v in given.items() if v is not None]
    if len(names) != 1:
        raise ArgumentError(f"{what}: exactly one of {', '.join(given)} must be given",
                            expected="one of them",
                            got=", ".join(names) or "none", fix=f"{what}({next(iter(given))}=...)")
    return names[0]


class lazy_property:
    """Property that is computed with its gradient on first use, unless it was set before."""

    def __init__(self, f: Callable):
        self.f, self.__doc__ = f, f.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None):
        if instance is None:
            return self
        with enable_grad():
            value = vars(instance)[self.name] = self.f(instance)
        return value


# ---- probabilities and their logarithms
def clamp_probs(probs):
    """Return probabilities clamped slightly away from 0 and 1."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs, is_binary: bool = False):
    """Return log(p), or log(p / (1 - p)) of binary outcomes.

    Probabilities of 0 and 1 give infinities with gradient 0.
    """
    return safe_log(probs) - safe_log1p(-probs) if is_binary else safe_log(probs)


def logits_to_probs(logits, is_binary: bool = False):
    """Return probabilities: a softmax over the last axis, or a sigmoid for binary outcomes."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


# ---- samples from the default generator
def uniform(shape: Sequence[int], like):
    """Draw uniform numbers in (0, 1), with the dtype and device of `like`."""
    with use_device_of(like):
        return uniform_of(tuple(shape), like.dtype, 0, 1).clamp(min=finfo(like.dtype).tiny)


def normal(shape: Sequence[int], like):
    """Draw standard normal numbers with the dtype and device of `like`."""
    with use_device_of(like):
        return normal_of(tuple(shape), like.dtype, 0, 1)


def numpy_generator() -> np.random.Generator:
    """Return a NumPy generator that is seeded with the next seed of flow's default generator."""
    return np.random.Generator(np.random.Philox(key=list(default_generator.next())))


def draw_by_numpy(name: str, shape: Sequence[int], *parameters):
    """Draw with the method `name` of np.random.Generator, seeded by the default generator. Not for graphs."""
    arrays = [data(name, p.detach()) for p in parameters]
    y = getattr(numpy_generator(), name)(*arrays, size=tuple(shape))
    return cast(beside(from_numpy(np.asarray(y, np.float64)), parameters[0]), parameters[0].dtype)
