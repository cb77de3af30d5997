"""flow.fft: Fourier transforms of real tensors.

A complex number is stored as a pair along a last axis of size two, its real and its imaginary part. rfft of n
values returns n // 2 + 1 such pairs. Pairs are added, scaled, and trained like all values, but they are
multiplied by `flow.fft.mul`, not by `*`. A circular convolution of two signals is a product of their spectra,
`irfft(mul(rfft(x), rfft(w)), len(x))`. The power of each frequency is `rfft(x).square().sum(-1)`. All
functions have gradients. (NumPy works in main memory, so a tensor on a GPU is copied there and back.)
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast, default_float
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.tensor.arguments.dims import dims, move_axis, real_dim
from flowedu.tensor.arguments.types import Axes, Device, Placement, Sbp
from flowedu.tensor.construction.creation import tensor
from flowedu.tensor.construction.destination import finished
from flowedu.tensor.construction.windows import float_dtype
from flowedu.tensor.devices.conversion import on_cpu
from flowedu.tensor.dtypes.promotion import check_tensor
from flowedu.tensor.shapes import join_and_pad as J
from flowedu.tensor.shapes import split_and_flip as P

_HALF = "the real and the imaginary part along a last axis of two"


def _scale(what: str, norm: str | None, n: int, back: bool) -> float:
    """Return the factor of a transform of n values; back: the inverse transform."""
    if norm not in (None, "backward", "forward", "ortho"):
        raise ArgumentError(f"{what}: invalid normalization mode",
                            expected='"backward" (None), "forward" or "ortho"',
                            got=repr(norm), fix='"ortho" divides both ways by the root of n')
    if norm == "ortho":
        return n ** -0.5
    return 1 / n if (norm == "forward") != back else 1.0


def _size(what: str, n: int) -> int:
    n = operator.index(n)
    if n < 1:
        raise ArgumentError(f"{what}: invalid number of data points ({n}) specified",
                            expected="n of 1 or more", got=str(n), fix="leave n out for all of a signal")
    return n


def _floating(what: str, input: Tensor) -> Tensor:
    check_tensor(what, input)
    return input if input.dtype.is_floating_point else cast(input, default_float())


def _pairs(what: str, x: Tensor, name: str) -> Tensor:
    x = _floating(what, x)
    if x.ndim < 1 or x.shape[-1] != 2:
        raise ShapeError(f"{what}: {name} is not made of pairs", expected=f"(..., 2): {_HALF}",
                         got=str(tuple(x.shape)),
                         fix="flow.fft.rfft makes such; flow.stack([real, imaginary], -1)")
    return x


def _fitted(x: Tensor, axis: int, n: int) -> Tensor:
    """Return x cropped or padded with zeros to n positions along the axis."""
    size = x.shape[axis]
    if size > n:
        return P.part(x, axis, 0, n)
    return J.pad(x, (0, 0) * (x.ndim - 1 - axis) + (0, n - size)) if size < n else x


def _half(what: str, input: Tensor, n: int | None, dim: int, norm: str | None) -> tuple[Tensor, int, int]:
    """Return (frequencies 0 to n // 2 as pairs along the second to last axis, n, the axis)."""
    x = _floating(what, input)
    axis = real_dim(dim, x.ndim, what)
    n = _size(what, x.shape[axis] if n is None else n)
    scale = _scale(what, norm, n, False)
    return on_cpu("rfft", move_axis(_fitted(x, axis, n), axis, x.ndim - 1), scale=scale), n, axis


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the frequencies 0 to n // 2 of a real signal.

    The shape changes from (..., n, ...) to (..., n // 2 + 1, ..., 2). The new last axis contains the real and
    the imaginary part. The other frequencies are mirror images of these.

    Args:
        input: tensor; integers are converted to the default float dtype.
        n: number of values along `dim`; default: all. Longer signals are cropped, and shorter ones are padded
            with zeros.
        dim: axis of the signal.
        norm: with "backward" (None), irfft divides by n. With "forward", rfft divides by n. With "ortho",
            both divide by sqrt(n).

    A convolution with a learned spectrum `weight`, and the power of each frequency:

        spectrum = flow.fft.rfft(x)
        y = flow.fft.irfft(flow.fft.mul(spectrum, weight), n=x.shape[-1])
        power = spectrum.square().sum(-1)
    """
    y, _, axis = _half("fft.rfft", input, n, dim, norm)
    return move_axis(y, y.ndim - 2, axis)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the real signal with the given frequencies, the inverse of rfft.

    The shape changes from (..., m, ..., 2) to (..., n, ...).

    Args:
        input: pairs of real and imaginary parts.
        n: length of the result; default: 2 * (m - 1). An odd n must be passed, because m frequencies do not
            determine if n is odd. n // 2 + 1 frequencies are read. Further frequencies are ignored, and
            missing ones are 0.
        dim: axis of the frequencies, counted without the axis of the pairs.
        norm: the norm passed to rfft.

    Note:
        The imaginary part of frequency 0 is not read, because it is 0 for a real signal. The same holds for
        frequency n / 2 if n is even.
    """
    x = _pairs("fft.irfft", input, "input")
    axis = real_dim(dim, x.ndim - 1, "fft.irfft")
    n = _size("fft.irfft", 2 * (x.shape[axis] - 1) if n is None else n)
    scale = _scale("fft.irfft", norm, n, True)
    y = on_cpu("irfft", move_axis(_fitted(x, axis, n // 2 + 1), axis, x.ndim - 2), n=n, scale=scale)
    return move_axis(y, y.ndim - 1, axis)


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return all n frequencies of a real signal.

    The shape changes from (..., n, ...) to (..., n, ..., 2). The frequencies of rfft are followed by their
    mirror images, because frequency n - k is the conjugate of frequency k. rfft returns the same information
    in half the values. Complex signals are not supported, so pairs in `input` are treated as real values.

    Args:
        input: tensor; integers are converted to the default float dtype.
        n: number of values along `dim`; default: all. Longer signals are cropped, and shorter ones are padded
            with zeros.
        dim: axis of the signal.
        norm: "backward" (None), "forward", or "ortho", see rfft.
    """
    half, n, axis = _half("fft.fft", input, n, dim, norm)
    real, imaginary = P.unbind(half, -1)
    last = real.ndim - 1
    a, b = (P.flip(P.part(x, last, 1, (n + 1) // 2), -1) for x in (real, imaginary))
    y = J.stack([J.cat([real, a], -1), J.cat([imaginary, -b], -1)], -1)
    return move_axis(y, y.ndim - 2, axis)


def mul(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of complex numbers that are stored as pairs.

    `a * b` would only multiply real parts by real parts and imaginary parts by imaginary parts. The conjugate
    of b is `b * flow.tensor([1.0, -1.0])`.

    Args:
        a: pairs (..., 2).
        b: pairs (..., 2); the shapes broadcast.
    """
    ar, ai = P.unbind(_pairs("fft.mul", a, "a"), -1)
    br, bi = P.unbind(_pairs("fft.mul", b, "b"), -1)
    return J.stack([ar * br - ai * bi, ar * bi + ai * br], -1)


def _frequencies(what: str, f: Callable, n: int, d: float, dtype: dt.dtype | None) -> Tensor:
    return tensor(f(_size(what, n), d), dtype=float_dtype(what, dtype))


def fftfreq(n: int, d: float = 1.0, *, dtype: dt.dtype | None = None, device: Device | None = None,
            requires_grad: bool = False, placement: Placement | None = None,
            sbp: Sbp | None = None) -> Tensor:
    """Return the frequencies of `fft` in their order, the vector (n,) of 0, 1, ..., -2, -1, divided by n * d.

    Args:
        n: length of the signal.
        d: time between neighboring values of the signal.
        dtype: dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    return finished(_frequencies("fft.fftfreq", np.fft.fftfreq, n, d, dtype), device, requires_grad,
                    placement, sbp)


def rfftfreq(n: int, d: float = 1.0, *, dtype: dt.dtype | None = None, device: Device | None = None,
             requires_grad: bool = False, placement: Placement | None = None,
             sbp: Sbp | None = None) -> Tensor:
    """Return the frequencies of `rfft`, the vector (n // 2 + 1,) of 0, 1, ..., n // 2, divided by n * d.

    Args:
        n: length of the signal.
        d: time between neighboring values of the signal.
        dtype: dtype; default: the default dtype.
        device: device of the tensor; default: the CPU.
        requires_grad: compute gradients of the tensor.
        placement: devices of a global tensor; default: None, a local tensor.
        sbp: layout of a global tensor, given with placement; default: None.
    """
    return finished(_frequencies("fft.rfftfreq", np.fft.rfftfreq, n, d, dtype), device, requires_grad,
                    placement, sbp)


def _shifted(what: str, input: Tensor, dim: Axes | None, sign: int) -> Tensor:
    check_tensor(what, input)
    if dim is None and input.ndim > 1 and input.shape[-1] == 2:
        raise ArgumentError(f"{what}: the last axis may be one of pairs, whose parts would change places",
                            got="dim=None",
                            expected=f"dim, of a tensor {tuple(input.shape)}",
                            fix="dim=-2, or a tuple of all axes")
    along = dims(dim, input.ndim, what)
    return P.roll(input, [sign * (input.shape[a] // 2) for a in along], along)


def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Move the negative frequencies before the others, so that 0 is in the middle.

    Args:
        input: tensor. For a result of `fft`, which has pairs along its last axis, pass dim=-2.
        dim: axis or axes; default: all.
    """
    return _shifted("fft.fftshift", input, dim, 1)


def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Undo fftshift, so that frequency 0 is first.

    Args:
        input: tensor. For a result of `fft`, which has pairs along its last axis, pass dim=-2.
        dim: axis or axes; default: all.
    """
    return _shifted("fft.ifftshift", input, dim, -1)


__all__ = ["fft", "fftfreq", "fftshift", "ifftshift", "irfft", "mul", "rfft", "rfftfreq"]


def __dir__() -> list[str]:
    return sorted(__all__)
