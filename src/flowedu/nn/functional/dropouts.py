"""Dropout of elements and of channels, and alpha dropout."""
from __future__ import annotations

import warnings
from collections.abc import Callable

from flowedu.core.ops.promote import REDUCING, cast
from flowedu.core.ops.view import constant
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.common import check_tensor
from flowedu.ops import random
from flowedu.ops.random import random_mask_like
from flowedu.tensor import Tensor
from flowedu.tensor.construction.generator import Generator, draw
from flowedu.tensor.devices.conversion import use_device_of
from flowedu.tensor.inplace.history import compute_into


def _check_p(what: str, p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"dropout probability has to be between 0 and 1, but got {p}",
                            expected="a probability", got=f"{what}: p={p}", fix="p=0.5 drops half")


def _put(what: str, f: Callable, input: Tensor, inplace: bool) -> Tensor:
    """Return f(input); inplace: write it into the input.

    The op that computed the input (softmax, for example) may have saved it. OneFlow allows dropping elements
    of that too.
    """
    return compute_into(input, f, (), {}, what, lenient=True) if inplace else f(input)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *,
            generator: Generator | None = None) -> Tensor:
    """Zero each element with probability p and divide the others by 1 - p.

    Args:
        input: tensor of any shape.
        p: probability, 0 to 1.
        training: True: apply dropout; False: return the input itself.
        inplace: write the result into the memory of the input.
        generator: flow.Generator that draws the mask; default: the generator that flow.manual_seed seeds.
    """
    check_tensor("dropout", input)
    _check_p("dropout", p)
    if not training or p == 0.0:
        return input
    mask = draw(random_mask_like, (input,), (float(p),), generator)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    carrier = REDUCING.get(input.dtype.name)
    return _put("dropout", lambda x: random.dropout.call((x, mask), (scale,)) if carrier is None else cast(
        random.dropout.call((cast(x, carrier), mask), (scale,)), x.dtype), input, inplace)


def _whole(what: str, input: Tensor, p: float, training: bool, inplace: bool, lead: int) -> Tensor:
    """Drop out whole parts: the mask has one number for all axes after the first `lead` ones."""
    check_tensor(what, input)
    _check_p(what, p)
    if not training or p == 0.0:
        return input
    shape = (*input.shape[:lead], *(1,) * (input.ndim - lead))
    with use_device_of(input):
        one = constant(shape=shape, value=1, dtype=input.dtype)
    mask = dropout(one, p)
    return _put(what, lambda x: x * mask, input, inplace)


def _of_channels(n: int) -> Callable[..., Tensor]:
    what = f"dropout{n}d"

    def f(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        ranks = (n + 1, n + 2) if n != 2 else (3, 4)
        if n == input.ndim == 2:                           # same result and warning in PyTorch
            warnings.warn("dropout2d: received a 2-D input, (N, C): single elements are dropped, as "
                          "dropout does", stacklevel=2)
        elif input.ndim not in ranks:
            raise ShapeError(f"{what}: Expected {ranks[0]}D or {ranks[1]}D input, but received a "
                             f"{input.ndim}D input",
                             expected=f"(N, C, {', '.join('DHW'[3 - n:])}) or without N",
                             got=str(tuple(input.shape)), fix="F.dropout drops single elements of any shape")
        # PyTorch treats a 3-D input of dropout2d as (N, C, L), not as (C, H, W).
        lead = 2 if n == 2 or input.ndim == n + 2 else 1
        return _whole(what, input, p, training, inplace, lead)

    f.__name__ = f.__qualname__ = what
    f.__doc__ = f"""Zero each channel with probability p and divide the others by 1 - p.

    Args:
        input: (N, C, {", ".join("DHW"[3 - n:])}).
        p: probability, 0 to 1.
        training: True: apply dropout; False: return the input itself.
        inplace: write the result into the memory of the input.
    """
    return f


dropout1d, dropout2d, dropout3d = _of_channels(1), _of_channels(2), _of_channels(3)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Drop elements of SELU outputs so that mean 0 and variance 1 are preserved.

    Dropped elements are set to the lower limit of selu. Then all elements are scaled and shifted.

    Args:
        input: floating tensor of any shape.
        p: probability, 0 to 1.
        training: True: apply dropout; False: return the input itself.
        inplace: write the result into the memory of the input.
    """
    check_tensor("alpha_dropout", input)
    _check_p("alpha_dropout", p)
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return _put("alpha_dropout", lambda x: x * 0, input, inplace)
    least = -1.7580993408473766
    a = ((1 - p) * (1 + p * least * least)) ** -0.5
    mask = cast(draw(random_mask_like, (input,), (float(p),)), input.dtype)
    return _put("alpha_dropout", lambda x: (x * mask + (1 - mask) * least) * a - a * p * least, input,
                inplace)


__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d"]
