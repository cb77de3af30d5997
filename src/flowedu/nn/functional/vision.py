"""Images: interpolate, pixel_shuffle, unfold and fold (im2col, col2im)."""
from __future__ import annotations

import math

from flowedu.blob import dtype as dt
from flowedu.errors import ArgumentError, ShapeError, UnsupportedError
from flowedu.nn.functional.common import check_tensor, ints, reshaped
from flowedu.ops.define import REGISTRY
from flowedu.ops.resize import NEARLY
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.joining import pad
from flowedu.tensor.promote import cast

_r = REGISTRY
_AXES = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,), "trilinear": (3,),
         "bicubic": (2,), "area": (1, 2, 3)}


# ---- sizes
def interpolate(input: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool | None = None,
                recompute_scale_factor: bool | None = None, antialias: bool = False) -> Tensor:
    """Planes made larger or smaller.

    Args:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: of the result, an int or one for each axis; or
        scale_factor: a number, or one for each axis; the size is floor(size * factor).
        mode: "nearest", "linear" (one axis), "bilinear" (two), "trilinear" (three), "bicubic" (two), "area" (means), or
            "nearest-exact" ("nearest" with the middles of the pixels).
        align_corners: for the linear ones: the middles of the outermost pixels coincide. Default: pixels are squares.
        recompute_scale_factor: use the ratio of the sizes instead of scale_factor.

    Raises: ArgumentError (a ValueError and RuntimeError), UnsupportedError: antialias.
    """
    check_tensor("interpolate", input)
    n = input.ndim - 2
    if antialias:
        raise UnsupportedError("interpolate: antialias is not there", expected="antialias=False", got="True",
                               fix="mode='area' for smaller images")
    if mode not in _AXES or n not in _AXES[mode]:
        raise ArgumentError(f"interpolate: mode={mode!r} does not fit a {input.ndim}D input",
                            expected="nearest and area for "
                            "3D to 5D; linear for 3D, bilinear for 4D, trilinear for 5D",
                            got=f"{mode!r}, {tuple(input.shape)}", fix="mode='nearest' takes all ranks")
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ArgumentError("interpolate: align_corners option can only be set with the interpolating modes: linear | "
                            "bilinear | bicubic | trilinear", expected="None", got=str(align_corners),
                            fix="leave align_corners out")
    if (size is None) == (scale_factor is None):
        raise ArgumentError("interpolate: only one of size or scale_factor should be defined", expected="one of the two",
                            got="neither" if size is None else "both", fix="size=(height, width), or scale_factor=2")
    old = tuple(input.shape[2:])
    if size is not None:
        new, factors = ints(size, n, "interpolate", "size", 1), None
    else:
        factors = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * n
        if len(factors) != n:
            raise ArgumentError("interpolate: Input and scale_factor must have the same number of spatial dimensions",
                                expected=f"{n} factors", got=str(scale_factor), fix="one number for all axes")
        if not all(0 < s * float(f) < 2 ** 62 for s, f in zip(old, factors)):
            raise ArgumentError("interpolate: scale_factor is not right", expected="a finite number above 0, and a picture",
                                got=f"{scale_factor}, {old}", fix="scale_factor=2.0")
        new = tuple(int(math.floor(s * float(f))) for s, f in zip(old, factors))
    if 0 in old or 0 in new:
        raise ShapeError("interpolate: Input and output sizes should be greater than 0", got=f"{old} to {new}",
                         expected="sizes of 1 or more", fix="leave empty pictures out")
    if mode == "area":
        from flowedu.nn.functional import pool
        return getattr(pool, f"adaptive_avg_pool{n}d")(input, new)
    if factors is None or recompute_scale_factor:
        factors = tuple(b / a for a, b in zip(old, new))
    factors = tuple(map(float, factors))
    if mode in ("bicubic", "nearest-exact"):
        for i in range(n):
            read = _cubic if mode == "bicubic" else _middle
            input = read(input, 2 + i, new[i], factors[i], bool(align_corners))
        return input
    kind = "nearest" if mode == "nearest" else "bilinear"
    return _resized(input, new, factors, kind, bool(align_corners))


def _resized(x, new, factors, mode, corners):
    b, c, *old = x.shape
    if len(new) == 1:
        y = _plane(reshaped(x, (b, c, 1, old[0])), (1, *new), (1.0, *factors), mode, corners)
        return reshaped(y, (b, c, *new))
    if len(new) == 2:
        return _plane(x, new, factors, mode, corners)
    y = _plane(reshaped(x, (b, c * old[0], *old[1:])), new[1:], factors[1:], mode, corners)
    y = _plane(reshaped(y, (b, c, old[0], new[1] * new[2])), (new[0], new[1] * new[2]), (factors[0], 1.0), mode, corners)
    return reshaped(y, (b, c, *new))


def _plane(x, size, scale, mode, corners):
    return _r["resize2d"](x, size=tuple(size), scale=tuple(scale), mode=mode, align_corners=corners and mode != "nearest")


def _positions(n: int, out: int, factor: float, corners: bool, dtype):
    """Where the middles of `out` pixels lie in a row of n."""
    i = cast(_r["range"](size=out, dtype=dt.int64), dtype)
    return i * ((n - 1) / (out - 1) if out > 1 else 0.0) if corners else (i + 0.5) * (1.0 / factor) - 0.5


def _middle(x, axis: int, out: int, factor: float, corners: bool):
    at = _positions(x.shape[axis], out, factor, False, dt.float64) + 0.5
    return _taken(x, axis, _r["floor"](at * NEARLY))


def _taken(x, axis: int, places):
    """The elements of an axis at `places`; what lies outside counts as the border."""
    return _r["gather"].call((x, cast(E.clamp(places, 0.0, x.shape[axis] - 1.0), dt.int64)), (axis,))


def _cubic(x, axis: int, out: int, factor: float, corners: bool):
    """Each element from its four neighbours along an axis, by Keys' cubic with a = -0.75."""
    a = -0.75
    at = _positions(x.shape[axis], out, factor, corners, dt.float64)
    first = _r["floor"](at)
    t = at - first
    total = None
    for k in (-1, 0, 1, 2):
        d = _r["abs"](t - float(k))                      # the distance to that neighbour
        weight = ((a + 2) * d - (a + 3)) * d * d + 1 if k in (0, 1) else ((d - 5) * d + 8) * d * a - 4 * a
        weight = reshaped(cast(weight, x.dtype), (out, *(1,) * (x.ndim - axis - 1)))
        part = _taken(x, axis, first + float(k)) * weight
        total = part if total is None else total + part
    return total


def upsample(input: Tensor, size=None, scale_factor=None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:
    """interpolate, under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


# ---- channels and pixels
def _check_planes(what, x, factor, least: int = 3):
    check_tensor(what, x)
    if x.ndim < least or not isinstance(factor, int) or factor < 1:
        raise ShapeError(f"{what}: expects input to have at least {least} dimensions and a positive factor",
                         expected="(*, C, H, W), a factor of 1 or more", got=f"{tuple(x.shape)}, {factor!r}",
                         fix="a factor of 2, say")


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C * r * r, H, W) to (*, C, H * r, W * r): each run of r * r channels becomes a block of pixels."""
    _check_planes("pixel_shuffle", input, upscale_factor)
    (*lead, c, h, w), r = input.shape, upscale_factor
    if c % (r * r):
        raise ShapeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                         f"upscale_factor, but input.size(-3)={c} is not divisible by {r * r}",
                         expected=f"a multiple of {r * r}",
                         got=str(tuple(input.shape)), fix="factor * factor times as many filters in the layer before it")
    n = math.prod(lead)
    x = _r["transpose"](reshaped(input, (n, c // (r * r), r, r, h, w)), perm=(0, 1, 4, 2, 5, 3))
    return _r["reshape"](x, shape=(*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H * r, W * r) to (*, C * r * r, H, W): the inverse of pixel_shuffle."""
    _check_planes("pixel_unshuffle", input, downscale_factor)
    (*lead, c, h, w), r = input.shape, downscale_factor
    if h % r or w % r:
        raise ShapeError("pixel_unshuffle expects height and width to be divisible by downscale_factor",
                         expected=f"multiples "
                         f"of {r}", got=str(tuple(input.shape)), fix="crop or pad the image first")
    x = _r["transpose"](reshaped(input, (math.prod(lead), c, h // r, r, w // r, r)), perm=(0, 1, 3, 5, 2, 4))
    return _r["reshape"](x, shape=(*lead, c * r * r, h // r, w // r))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, C, ...) with the channels of the groups taken in turn."""
    _check_planes("channel_shuffle", input, groups)
    n, c, *rest = input.shape
    if c % groups:
        raise ShapeError("channel_shuffle: the channels are not divisible by groups", expected=f"a multiple of {groups}",
                         got=str(tuple(input.shape)), fix="groups that divide the channels")
    x = _r["transpose"](reshaped(input, (n, groups, c // groups, math.prod(rest))), perm=(0, 2, 1, 3))
    return _r["reshape"](x, shape=(n, c, *rest))


# ---- windows as columns
def unfold(input: Tensor, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """im2col: (N, C, H, W) to (N, C * kh * kw, L), a column for each of the L windows. Also without N."""
    check_tensor("unfold", input)
    if input.ndim not in (3, 4):
        raise ShapeError("unfold: Expected 3D or 4D (batch mode) tensor", expected="(N, C, H, W)",
                         got=str(tuple(input.shape)), fix="x.unsqueeze(0) adds a batch axis")
    x = input if input.ndim == 4 else reshaped(input, (1, *input.shape))
    kernel, steps, paddings, dilations = _four("unfold", kernel_size, stride, padding, dilation)
    if any(paddings):
        x = pad(x, (paddings[1], paddings[1], paddings[0], paddings[0]))
    b, c = x.shape[:2]
    for i in (0, 1):
        extent = (kernel[i] - 1) * dilations[i] + 1
        if extent > x.shape[2 + i]:
            raise ShapeError("unfold: the window does not fit into the padded input", expected=f"{extent} or more",
                             got=str(tuple(input.shape)), fix="more padding, or a smaller window")
        x = _r["unfold"](x, axis=2 + i, size=extent, step=steps[i])
    x = _r["slice"](x, start=(0,) * 6, stop=tuple(x.shape), step=(1, 1, 1, 1, *dilations)) if dilations != (1, 1) else x
    rows = _r["transpose"](x, perm=(0, 1, 4, 5, 2, 3))
    y = _r["reshape"](rows, shape=(b, c * kernel[0] * kernel[1], x.shape[2] * x.shape[3]))
    return y if input.ndim == 4 else reshaped(y, tuple(y.shape[1:]))


def _four(what, kernel_size, stride, padding, dilation):
    return (ints(kernel_size, 2, what, "kernel_size", 1), ints(stride, 2, what, "stride", 1),
            ints(padding, 2, what, "padding"), ints(dilation, 2, what, "dilation", 1))


def fold(input: Tensor, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """col2im: (N, C * kh * kw, L) to (N, C, H, W); what lies at one pixel is added. The adjoint of unfold."""
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
    total = None
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            part = _r["reshape"](_r["slice"](x, start=(0, 0, i, j, 0, 0), stop=(b, c, i + 1, j + 1, *out), step=(1,) * 6),
                                 shape=(b, c, *out))
            at = (i * dilations[0], j * dilations[1])
            stop = tuple(a + (o - 1) * s + 1 for a, o, s in zip(at, out, steps))
            part = _r["slice_grad"](part, shape=(b, c, *full), start=(0, 0, *at), stop=(b, c, *stop), step=(1, 1, *steps))
            total = part if total is None else total + part
    if any(paddings):
        total = _r["slice"](total, start=(0, 0, *paddings), step=(1,) * 4,
                            stop=(b, c, *(p + n for p, n in zip(paddings, size))))
    return total if input.ndim == 3 else reshaped(total, tuple(total.shape[1:]))


__all__ = ["channel_shuffle", "fold", "interpolate", "pad", "pixel_shuffle",
           "pixel_unshuffle",
           "unfold", "upsample"]
