"""Sliding windows as columns (unfold, im2col), and the reverse (fold, col2im)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.concat import slice_grad
from flowedu.core.ops.view import reshape, transpose
from flowedu.errors import ShapeError
from flowedu.nn.functional.common import Ints, check_tensor, ints, reshaped
from flowedu.ops.strided import unfold as unfold_op
from flowedu.tensor import Tensor
from flowedu.tensor.shapes.join_and_pad import pad


def windows_of(x: Tensor, kernel: Ints, strides: Ints, dilations: Ints) -> Tensor:
    """Return a view of all windows of x (n, c, sizes ...): (n, c, windows ..., kernel ...)."""
    for i, (k, s, d) in enumerate(zip(kernel, strides, dilations)):
        x = unfold_op(x, axis=2 + i, size=(k - 1) * d + 1, step=s)
    if all(d == 1 for d in dilations):
        return x
    step = (*(1,) * (2 + len(kernel)), *dilations)
    return slice_op(x, start=(0,) * x.ndim, stop=tuple(x.shape), step=step)


def unfold(input: Tensor, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1,
           padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1) -> Tensor:
    """Return sliding windows as columns (im2col).

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: size (kh, kw) of the windows, an int or a pair.
        dilation: distance between the elements of a window, an int or a pair.
        padding: zeros added on both sides, an int or a pair.
        stride: distance between windows, an int or a pair.

    Returns:
        (N, C * kh * kw, number of windows), or without N.
    """
    check_tensor("unfold", input)
    if input.ndim not in (3, 4):
        raise ShapeError("unfold: Expected 3D or 4D (batch mode) tensor", expected="(N, C, H, W)",
                         got=str(tuple(input.shape)), fix="x.unsqueeze(0) adds a batch axis")
    x = input if input.ndim == 4 else reshaped(input, (1, *input.shape))
    kernel, steps, paddings, dilations = _four("unfold", kernel_size, stride, padding, dilation)
    if any(paddings):
        x = pad(x, (paddings[1], paddings[1], paddings[0], paddings[0]))
    b, c = x.shape[:2]
    for size, k, d in zip(x.shape[2:], kernel, dilations):
        if (k - 1) * d + 1 > size:
            raise ShapeError("unfold: the window does not fit into the padded input",
                             expected=f"{(k - 1) * d + 1} or more",
                             got=str(tuple(input.shape)), fix="more padding, or a smaller window")
    x = windows_of(x, kernel, steps, dilations)
    rows = transpose(x, perm=(0, 1, 4, 5, 2, 3))
    y = reshape(rows, shape=(b, c * kernel[0] * kernel[1], x.shape[2] * x.shape[3]))
    return y if input.ndim == 4 else reshaped(y, tuple(y.shape[1:]))


def _four(what: str, kernel_size: int | Sequence[int], stride: int | Sequence[int],
          padding: int | Sequence[int], dilation: int | Sequence[int]) -> tuple[Ints, Ints, Ints, Ints]:
    return (ints(kernel_size, 2, what, "kernel_size", 1), ints(stride, 2, what, "stride", 1),
            ints(padding, 2, what, "padding"), ints(dilation, 2, what, "dilation", 1))


def fold(input: Tensor, output_size: int | Sequence[int], kernel_size: int | Sequence[int],
         dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
         stride: int | Sequence[int] = 1) -> Tensor:
    """Sum columns into images (col2im), the adjoint of unfold.

    Args:
        input: (N, C * kh * kw, number of windows) or without N.
        output_size: (H, W) of the images.
        kernel_size: size (kh, kw) of the windows, an int or a pair.
        dilation: distance between the elements of a window, an int or a pair.
        padding: padding of the images, an int or a pair.
        stride: distance between windows, an int or a pair.

    Returns:
        (N, C, H, W) or without N.
    """
    check_tensor("fold", input)
    size = ints(output_size, 2, "fold", "output_size", 1)
    kernel, steps, paddings, dilations = _four("fold", kernel_size, stride, padding, dilation)
    x = input if input.ndim == 3 else reshaped(input, (1, *input.shape))
    full = tuple(n + 2 * p for n, p in zip(size, paddings))
    out = tuple((n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(full, kernel, dilations, steps))
    taps = kernel[0] * kernel[1]
    if x.ndim != 3 or x.shape[1] % taps or x.shape[2] != out[0] * out[1]:
        raise ShapeError("fold: the columns do not fit", expected=f"(N, C * {taps}, {out[0] * out[1]})",
                         got=str(tuple(input.shape)), fix="the arguments that unfold was called with")
    b, c = x.shape[0], x.shape[1] // taps
    x = reshaped(x, (b, c, *kernel, *out))
    total: Any = None
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            part = reshape(slice_op(x, start=(0, 0, i, j, 0, 0), stop=(b, c, i + 1, j + 1, *out),
                                    step=(1,) * 6),
                           shape=(b, c, *out))
            at = (i * dilations[0], j * dilations[1])
            stop = tuple(a + (o - 1) * s + 1 for a, o, s in zip(at, out, steps))
            part = slice_grad(part, shape=(b, c, *full), start=(0, 0, *at), stop=(b, c, *stop),
                              step=(1, 1, *steps))
            total = part if total is None else total + part
    if any(paddings):
        total = slice_op(total, start=(0, 0, *paddings), step=(1,) * 4,
                         stop=(b, c, *(p + n for p, n in zip(paddings, size))))
    return total if input.ndim == 3 else reshaped(total, tuple(total.shape[1:]))


__all__ = ["fold", "unfold"]
