"""Partial inverses of max pooling: max_unpool1d to max_unpool3d."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.common import ints, reshaped
from flowedu.nn.functional.pool import batched
from flowedu.ops.pool import max_pool2d_grad
from flowedu.tensor import Tensor


def _max_unpool(n: int) -> Callable[..., Tensor]:
    what = f"max_unpool{n}d"

    def unpool(input: Tensor, indices: Tensor, kernel_size: int | Sequence[int],
               stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
               output_size: Sequence[int] | None = None) -> Tensor:
        x, single = batched(what, input, n)
        if input.shape != indices.shape:
            raise ShapeError(f"{what}: Expected shape of indices to be same as that of the input tensor",
                             expected=str(tuple(input.shape)), got=str(tuple(indices.shape)),
                             fix="pass both results of the pooling with return_indices=True")
        kernel = ints(kernel_size, n, what, "kernel_size", 1)
        strides = kernel if stride is None else ints(stride, n, what, "stride", 1)
        paddings = ints(padding, n, what, "padding")
        size = tuple((s - 1) * t - 2 * p + k for s, t, p, k in zip(x.shape[2:], strides, paddings, kernel))
        if output_size is not None:
            wanted = tuple(output_size)[-n:]
            if any(abs(w - s) >= t for w, s, t in zip(wanted, size, strides)):
                raise ArgumentError(f"{what}: invalid output_size {wanted}",
                                    expected=f"within a stride of {size}", got=str(tuple(output_size)),
                                    fix="leave it out, or pass the shape of the pooling's input")
            size = wanted
        (b, c), count = x.shape[:2], math.prod(x.shape[2:])
        y = max_pool2d_grad(reshaped(x, (b, c, 1, count)), reshaped(indices, (b, c, 1, count)),
                            hw=(1, math.prod(size)))
        y = reshaped(y, (b, c, *size))
        return reshaped(y, tuple(y.shape[1:])) if single else y

    unpool.__name__ = unpool.__qualname__ = what
    unpool.__doc__ = f"""Return the maxima of max_pool{n}d at their old positions, and zeros elsewhere.

    Args:
        input: the maxima, (N, C, {", ".join("DHW"[3 - n:])}) or without N.
        indices: positions from max_pool{n}d with return_indices. Maxima with the same position are summed.
        kernel_size: size of the windows, an int or one per axis.
        stride: distance between windows, an int or one per axis; default: kernel_size.
        padding: padding of the pooling, an int or one per axis.
        output_size: spatial size of the result; default: the smallest possible one.
    """
    return unpool


max_unpool1d, max_unpool2d, max_unpool3d = _max_unpool(1), _max_unpool(2), _max_unpool(3)
