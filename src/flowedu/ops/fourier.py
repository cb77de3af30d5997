"""Fourier transforms of real numbers, by NumPy's pocketfft.

A complex number is stored as its real and its imaginary part, along a last axis of size 2. Only half of the
frequencies are stored, because they determine the others if the signal is real.

As in ops/linalg.py, `ref` is the kernel. Both ops are linear, and the gradient of each is its transpose, the
other op. So they can be differentiated any number of times.
"""
from __future__ import annotations

import numpy as np

from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Laws, Meaning, Split
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, ShapeError
from flowedu.ops.types import AnyTensor, Shape


def _check_type(name: str, x: Spec) -> None:
    if not x.dtype.is_floating_point:
        raise DTypeError(f"{name}: no kernel for this element type", expected="float32 or float64",
                         got=x.dtype.name, fix="convert with .float()")


def _check_signal(x: Spec) -> None:
    _check_type("rfft", x)
    if not x.ndim or not x.shape[-1]:
        raise ShapeError("rfft: the input is empty", expected="1 or more along the last axis",
                         got=str(x.shape), fix="give it a signal")


def _check_spectrum(x: Spec, n: int) -> None:
    _check_type("irfft", x)
    if n < 1 or x.shape[-2:] != (n // 2 + 1, 2):
        raise ShapeError("irfft: the frequencies do not fit the size n of the signal",
                         got=f"{x.shape}, n={n}",
                         expected=f"a shape (..., n // 2 + 1 = {n // 2 + 1}, 2), n 1 or more",
                         fix="flow.fft.irfft cuts off frequencies, or adds zeros")


def _wide(x: np.ndarray) -> np.ndarray:
    # halves: rounded once, at the end
    return np.ascontiguousarray(x, np.float64 if x.dtype == np.float64 else np.float32)


def _inner(n: int) -> slice:
    """Return the frequencies that represent two of n, themselves and their mirror images.

    These are all but 0 and n / 2.
    """
    return slice(1, (n + 1) // 2)


def _rfft_ref(x: np.ndarray, scale: float, twice: bool) -> np.ndarray:
    with np.errstate(all="ignore"):
        y = np.fft.rfft(_wide(x))
        y *= scale
        if twice:
            y[..., _inner(x.shape[-1])] *= 2
    return y.view(y.real.dtype).reshape(*y.shape, 2).astype(x.dtype, copy=False)


def _irfft_ref(x: np.ndarray, n: int, scale: float, twice: bool) -> np.ndarray:
    wide = _wide(x)
    y: np.ndarray = wide.view(np.complex128 if wide.dtype == np.float64 else np.complex64)[..., 0]
    with np.errstate(all="ignore"):
        if not twice:
            y = y.copy()
            y[..., _inner(n)] /= 2
        return (np.fft.irfft(y, n, norm="forward") * scale).astype(x.dtype, copy=False)


def _rfft_grad(dy: AnyTensor, x_shape: Shape, scale: float, twice: bool) -> AnyTensor:
    return irfft(dy, n=x_shape[-1], scale=scale, twice=twice)


rfft = define(
    "rfft(x, *, scale=1.0, twice=False) -> y",
    Meaning(lambda x: "{0}N->{0}MR".format(axes.same(x.ndim - 1)), _rfft_ref,
            shape=lambda x: (*x.shape[:-1], x.shape[-1] // 2 + 1, 2), check=_check_signal),
    Split(linear=["x"]),
    Laws([dict(shapes=[(6, 12)]), dict(shapes=[(6, 2, 7)], scale=0.5), dict(shapes=[(6, 5)], twice=True),
          dict(shapes=[(4,)], twice=True), dict(shapes=[(6, 1)]), dict(shapes=[(2,)])]),
    grad={"x": _rfft_grad},
    doc="The frequencies 0, 1, ..., n // 2 of n real numbers, as pairs, times scale; twice: those that have "
    "a mirror image among the n are doubled.")

irfft = define(
    "irfft(x, *, n, scale=1.0, twice=True) -> y",
    Meaning(lambda x: "{0}MR->{0}N".format(axes.same(x.ndim - 2)), _irfft_ref,
            shape=lambda x, n: (*x.shape[:-2], n), check=_check_spectrum),
    Split(linear=["x"]),
    Laws([dict(shapes=[(6, 7, 2)], n=12), dict(shapes=[(6, 2, 4, 2)], n=7, scale=0.5),
          dict(shapes=[(6, 3, 2)], n=5, twice=False), dict(shapes=[(3, 2)], n=4, twice=False),
          dict(shapes=[(6, 1, 2)], n=1), dict(shapes=[(2, 2)], n=2)]),
    grad={"x": lambda dy, scale, twice: rfft(dy, scale=scale, twice=twice)},
    doc="The n real numbers that the waves of these frequencies add up to, times scale; twice: each that has "
    "a mirror image among the n counts for both.")
