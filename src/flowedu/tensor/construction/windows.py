"""Windows of signal processing.

`periodic=True` makes one period of the window, for spectra; False makes a symmetric window, for filters.
"""
from __future__ import annotations

from collections.abc import Callable
from math import pi

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, DTypeError
from flowedu.tensor.arguments.types import Device, Placement, Sbp
from flowedu.tensor.construction.creation import default_float, tensor
from flowedu.tensor.construction.destination import finished


def float_dtype(name: str, dtype: dt.dtype | None) -> dt.dtype:
    """Return a floating dtype, by default the default dtype. name: the function's, for the error."""
    kind = default_float() if dtype is None else dt.as_dtype(dtype)
    if not kind.is_floating_point:
        raise DTypeError(f"{name}: floating point types are expected", expected="float32 or float64",
                         got=kind.name, fix="leave dtype out, and convert the result")
    return kind


def _make_window(name: str, length: int, periodic: bool, formula: Callable, dtype: dt.dtype | None) -> Tensor:
    """Return formula(k / n) at the positions k = 0, 1, ..., computed in float64; a window of size 1 is [1].
    """
    if length < 0:
        raise ArgumentError(f"{name}: requires non-negative window_length", expected="0 or more",
                            got=str(length), fix="window_length=400, say")
    n = length if periodic else length - 1
    return tensor(formula(np.arange(length) / n) if length > 1 else np.ones(length),
                  dtype=float_dtype(name, dtype))


def hann_window(window_length: int, periodic: bool = True, *, dtype: dt.dtype | None = None,
                device: Device | None = None, requires_grad: bool = False, placement: Placement | None = None,
                sbp: Sbp | None = None) -> Tensor:
    """Return 0.5 - 0.5 cos(2 pi k / n) for k = 0, 1, ..., a vector (window_length,).

    n is window_length if `periodic`, else window_length - 1.

    Args:
        window_length: number of values.
        periodic: True makes one period of the window, for spectra; False makes it symmetric, for filters.
        dtype: floating dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    t = _make_window("hann_window", window_length, periodic, lambda t: 0.5 - 0.5 * np.cos(2 * pi * t), dtype)
    return finished(t, device, requires_grad, placement, sbp)


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
                   dtype: dt.dtype | None = None, device: Device | None = None, requires_grad: bool = False,
                   placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Return alpha - beta cos(2 pi k / n) for k = 0, 1, ..., a vector (window_length,).

    n is window_length if `periodic`, else window_length - 1.

    Args:
        window_length: number of values.
        periodic: True makes one period of the window, for spectra; False makes it symmetric, for filters.
        alpha: mean of the window.
        beta: amplitude of the cosine.
        dtype: floating dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    t = _make_window("hamming_window", window_length, periodic, lambda t: alpha - beta * np.cos(2 * pi * t),
                     dtype)
    return finished(t, device, requires_grad, placement, sbp)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: dt.dtype | None = None,
                    device: Device | None = None, requires_grad: bool = False,
                    placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Return 0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n) for k = 0, 1, ..., a vector (window_length,).

    n is window_length if `periodic`, else window_length - 1.

    Args:
        window_length: number of values.
        periodic: True makes one period of the window, for spectra; False makes it symmetric, for filters.
        dtype: floating dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    t = _make_window("blackman_window", window_length, periodic,
              lambda t: 0.42 - 0.5 * np.cos(2 * pi * t) + 0.08 * np.cos(4 * pi * t), dtype)
    return finished(t, device, requires_grad, placement, sbp)


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: dt.dtype | None = None,
                    device: Device | None = None, requires_grad: bool = False,
                    placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Return the triangle 1 - |2 k / n - 1| for k = 0, 1, ..., a vector (window_length,).

    n is window_length if `periodic`, else window_length - 1.

    Args:
        window_length: number of values.
        periodic: True makes one period of the window, for spectra; False makes it symmetric, for filters.
        dtype: floating dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    t = _make_window("bartlett_window", window_length, periodic, lambda t: 1 - np.abs(2 * t - 1), dtype)
    return finished(t, device, requires_grad, placement, sbp)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *,
                  dtype: dt.dtype | None = None, device: Device | None = None, requires_grad: bool = False,
                  placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
    """Return I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta) for k = 0, 1, ..., a vector (window_length,).

    I0 is the modified Bessel function. n is window_length if `periodic`, else window_length - 1.

    Args:
        window_length: number of values.
        periodic: True makes one period of the window, for spectra; False makes it symmetric, for filters.
        beta: shape parameter; larger values give a narrower window.
        dtype: floating dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    t = _make_window("kaiser_window", window_length, periodic,
              lambda t: np.i0(beta * np.sqrt(1 - (2 * t - 1) ** 2)) / np.i0(beta), dtype)
    return finished(t, device, requires_grad, placement, sbp)
