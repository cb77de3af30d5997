"""Dropout in its kinds."""
from __future__ import annotations

import warnings
from collections.abc import Callable

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import REDUCING, cast
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.common import check_tensor
from flowedu.tensor import Tensor
from flowedu.tensor.devices import made_with
from flowedu.tensor.generator import draw
from flowedu.tensor.inplace import compute_into

_MASK, _DROPOUT = REGISTRY["random_mask_like"], REGISTRY["dropout"]


def _check_p(what: str, p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"dropout probability has to be between 0 and 1, but got {p}", expected="a probability",
                            got=f"{what}: p={p}", fix="p=0.5 drops half")


def _put(what: str, f: Callable, input, inplace: bool):
    """Return f(input); inplace: write it into the input.

    The op that computed the input (softmax, for example) may have saved it. OneFlow allows dropping elements
    of that too.
    """
    return compute_into(input, f, (), {}, what, lenient=True) if inplace else f(input)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator=None) -> Tensor:
    """Each element is 0 with probability p, the others are divided by 1 - p; without training the input itself."""
    check_tensor("dropout", input)
    _check_p("dropout", p)
    if not training or p == 0.0:
        return input
    mask = draw(_MASK, (input,), (float(p),), generator)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    carrier = REDUCING.get(input.dtype.name)
    return _put("dropout", lambda x: _DROPOUT.call((x, mask), (scale,)) if carrier is None else cast(
        _DROPOUT.call((cast(x, carrier), mask), (scale,)), x.dtype), input, inplace)


def _whole(what: str, input, p: float, training: bool, inplace: bool, lead: int):
    """Dropout of parts: one number of the mask for everything behind the first `lead` axes."""
    check_tensor(what, input)
    _check_p(what, p)
    if not training or p == 0.0:
        return input
    shape = (*input.shape[:lead], *(1,) * (input.ndim - lead))
    with made_with(input):
        one = REGISTRY["constant"](shape=shape, value=1, dtype=input.dtype)
    mask = dropout(one, p)
    return _put(what, lambda x: x * mask, input, inplace)


def _of_channels(n: int):
    what = f"dropout{n}d"

    def f(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        ranks = (n + 1, n + 2) if n != 2 else (3, 4)
        if n == input.ndim == 2:                           # as PyTorch does, which says the same
            warnings.warn("dropout2d: received a 2-D input, (N, C): single elements are dropped, as dropout does",
                          stacklevel=2)
        elif input.ndim not in ranks:
            raise ShapeError(f"{what}: Expected {ranks[0]}D or {ranks[1]}D input, but received a {input.ndim}D input",
                             expected=f"(N, C, {', '.join('DHW'[3 - n:])}) or without N", got=str(tuple(input.shape)),
                             fix="F.dropout drops single elements of any shape")
        # PyTorch takes (C, H, W) of dropout2d for (N, C, L)
        lead = 2 if n == 2 or input.ndim == n + 2 else 1
        return _whole(what, input, p, training, inplace, lead)

    f.__name__ = f.__qualname__ = what
    f.__doc__ = "Dropout of whole channels of (N, C, " + ", ".join("DHW"[3 - n:]) + ")."
    return f


dropout1d, dropout2d, dropout3d = _of_channels(1), _of_channels(2), _of_channels(3)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for selu: dropped elements get selu's least value, then all are rescaled to mean 0 and variance 1."""
    check_tensor("alpha_dropout", input)
    _check_p("alpha_dropout", p)
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return _put("alpha_dropout", lambda x: x * 0, input, inplace)
    least = -1.7580993408473766
    a = ((1 - p) * (1 + p * least * least)) ** -0.5
    mask = cast(draw(_MASK, (input,), (float(p),)), input.dtype)
    return _put("alpha_dropout", lambda x: (x * mask + (1 - mask) * least) * a - a * p * least, input, inplace)


__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d"]
