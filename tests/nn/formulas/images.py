"""Padding, resizing, channel and pixel shuffles, and grid sampling."""
import itertools
import math

import numpy as np

from .table import row
from .windows import adaptive_avg_pool, each


# ---- padding
def pad(input, pad, mode="constant", value=None):
    widths = [(pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    widths = [(0, 0)] * (input.ndim - len(widths)) + widths[::-1]
    if mode != "constant":
        return np.pad(input, widths, mode={"reflect": "reflect", "replicate": "edge",
                                           "circular": "wrap"}[mode])
    x = input[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(input.shape, widths))]
    return np.pad(x, [(max(a, 0), max(b, 0)) for a, b in widths], constant_values=0 if value is None
                  else value)


def _sides(d, size, mode):
    """Return (before, after) for the last axis, the one before it, and so on."""
    low, most = (-1, 2) if mode == "constant" else (0, 3)
    limits = {"reflect": -1, "circular": 0}
    return tuple(d.one_of(*range(low if n > 2 else 0, min(most, n + limits.get(mode, most)) + 1))
                 for n in reversed(size) for _ in range(2))


def _padded(d):
    mode = d.one_of("constant", "reflect", "replicate", "circular")
    x = d.floats(*d.shape(1, 4))
    axes = d.whole(1, x.ndim)
    args = {"input": x, "pad": _sides(d, x.shape[-axes:], mode), "mode": mode}
    return args | (d.options(value=(0, 2.5)) if mode == "constant" else {})


row(_padded)(pad)


def _pad_layer(mode):
    def formula(input, padding, value=None):
        n = 2 * (input.ndim - 2)
        return pad(input, each(padding, n), mode, value)

    return formula


def _around(d, n, mode, value):
    x = d.floats(d.one_of(1, 2), d.one_of(1, 2), *(d.one_of(2, 3) for _ in range(n)))
    args = {"input": x, "padding": d.one_of(1, _sides(d, x.shape[2:], mode))}
    return args | ({"value": d.one_of(-1.5, 2.0)} if value else {})


for _n, (_mode, _kind) in itertools.product((1, 2, 3), (("reflect", "Reflection"),
                                                        ("replicate", "Replication"),
                                                        ("circular", "Circular"), ("constant", "Zero"),
                                                        ("constant", "Constant"))):
    row(lambda d, n=_n, m=_mode, k=_kind: _around(d, n, m, k == "Constant"), None, f"{_kind}Pad{_n}d",
        other_defaults=("value",))(_pad_layer(_mode))


# ---- resizing
def _hat(x):
    return np.maximum(0, 1 - np.abs(x))


def _keys(x, a=-0.75):
    """Return Keys' cubic kernel."""
    x = np.abs(x)
    return np.where(x <= 1, (a + 2) * x ** 3 - (a + 3) * x ** 2 + 1,
                    np.where(x < 2, a * x ** 3 - 5 * a * x ** 2 + 8 * a * x - 4 * a, 0))


def matrix(n, out, factor, mode, corners):
    """Return the (out, n) matrix of interpolation weights; positions outside use the border pixel."""
    i = np.arange(out)
    if mode == "nearest":
        return np.eye(n)[np.minimum(np.floor(i / factor), n - 1).astype(int)]
    if mode == "nearest-exact":
        return np.eye(n)[np.minimum(np.floor((i + 0.5) / factor), n - 1).astype(int)]
    at = i * ((n - 1) / (out - 1) if out > 1 else 0) if corners else (i + 0.5) / factor - 0.5
    at = at if mode == "bicubic" else np.clip(at, 0, n - 1)
    w = np.zeros((out, n))
    for k in range(-3, n + 3):
        w[:, min(max(k, 0), n - 1)] += (_keys if mode == "bicubic" else _hat)(at - k)
    return w


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None,
                recompute_scale_factor=None, antialias=False):
    n, old = input.ndim - 2, input.shape[2:]
    factors = each(scale_factor, n)
    new = each(size, n) if size is not None else tuple(math.floor(s * f) for s, f in zip(old, factors))
    if mode == "area":
        return adaptive_avg_pool(n)(input, new)
    if size is not None or recompute_scale_factor:
        factors = [b / a for a, b in zip(old, new)]
    for i in range(n):
        w = matrix(old[i], new[i], factors[i], mode, align_corners)
        input = np.moveaxis(np.tensordot(input, w, (2 + i, 1)), -1, 2 + i)
    return input


def _resized(d, modes=None, recompute=True):
    n = d.one_of(1, 2, 3)
    x = d.floats(d.one_of(1, 2), d.one_of(1, 3), *(d.one_of(2, 3, 4) for _ in range(n)))
    linear = {1: ("linear",), 2: ("bilinear", "bicubic"), 3: ("trilinear",)}[n]
    args = {"input": x} | d.options(mode=("area", "nearest-exact", *linear, *linear))
    if d.one_of(True, False):
        args["size"] = d.one_of(d.one_of(1, 4, 7), tuple(d.one_of(1, 2, 5) for _ in range(n)))
    else:
        args["scale_factor"] = d.one_of(2, 0.5, tuple(d.one_of(1.25, 0.75, 3) for _ in range(n)))
        args |= d.options(recompute_scale_factor=(True,)) if recompute else {}
    return args | (d.options(align_corners=(True, False)) if args.get("mode") in linear else {})


row(_resized, module="Upsample", other_defaults=("antialias",))(interpolate)


@row(lambda d: _resized(d, recompute=False))
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    return interpolate(input, size, scale_factor, mode, align_corners)


def _image(d):
    x = d.floats(d.one_of(1, 2), d.one_of(1, 3), d.one_of(1, 3, 4), d.one_of(1, 2, 5))
    return {"input": x} | ({"size": (5, 2)} if d.one_of(True,
                                                        False) else {"scale_factor": d.one_of(2, 3, (2, 1))})


@row(_image, function=None, module="UpsamplingNearest2d")
def _enlarged(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor)


@row(_image, function=None, module="UpsamplingBilinear2d")
def _smoothed(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, "bilinear", True)


# ---- channel and pixel shuffles
def _blocks(d, r, many):
    lead = d.one_of((), (2,), (1, 3))
    c = d.one_of(1, 2)
    h = d.one_of(1, 3)
    w = d.one_of(2, 3)
    return d.floats(*lead, c * r * r, h, w) if many else d.floats(*lead, c, h * r, w * r)


def _shuffled(d):
    r = d.one_of(1, 2, 3)
    return {"input": _blocks(d, r, True), "upscale_factor": r}


@row(_shuffled, module="PixelShuffle")
def pixel_shuffle(input, upscale_factor):
    r = upscale_factor
    *lead, c, h, w = input.shape
    y = np.zeros((*lead, c // (r * r), h * r, w * r))
    for i, j in itertools.product(range(r), range(r)):
        y[..., i::r, j::r] = input[..., i * r + j::r * r, :, :]
    return y


def _unshuffled(d):
    r = d.one_of(1, 2, 3)
    return {"input": _blocks(d, r, False), "downscale_factor": r}


@row(_unshuffled, module="PixelUnshuffle")
def pixel_unshuffle(input, downscale_factor):
    r = downscale_factor
    *lead, c, h, w = input.shape
    y = np.zeros((*lead, c * r * r, h // r, w // r))
    for i, j in itertools.product(range(r), range(r)):
        y[..., i * r + j::r * r, :, :] = input[..., i::r, j::r]
    return y


def _grouped(d):
    groups = d.one_of(1, 2, 3)
    return {"input": d.floats(d.one_of(1, 2), groups * d.one_of(1, 2, 3), *d.shape(1, 2)), "groups": groups}


@row(_grouped, module="ChannelShuffle")
def channel_shuffle(input, groups):
    size = input.shape[1] // groups
    return input[:, [g * size + i for i in range(size) for g in range(groups)]]


# ---- grid sampling
def _line(n, corners):
    """Return the centers of n pixels in [-1, 1]."""
    return (np.linspace(-1, 1, n) if n > 1 else np.zeros(1)) if corners else (2 * np.arange(n) + 1) / n - 1


def _draw_affine_arguments(d):
    n = d.one_of(1, 2)
    return {"theta": d.floats(n, 2, 3), "size": (n, 1, d.one_of(1, 2, 5), d.one_of(1, 3)),
            "align_corners": d.one_of(True, False)}


@row(_draw_affine_arguments)
def affine_grid(theta, size, align_corners=None):
    n, _, h, w = size
    grid = np.ones((h, w, 3))
    grid[..., 0], grid[..., 1] = _line(w, align_corners), _line(h, align_corners)[:, None]
    return np.einsum("nij,hwj->nhwi", theta, grid)


def _mirrored(at, low, high):
    """Reflect a position at both ends until it is in between."""
    if high <= low:
        return 0.0
    while not low <= at <= high:
        at = 2 * low - at if at < low else 2 * high - at
    return at


def _pixel(at, size, corners, mode):
    at = (at + 1) * (size - 1) / 2 if corners else ((at + 1) * size - 1) / 2
    if mode == "reflection":
        at = _mirrored(at, 0, size - 1) if corners else _mirrored(at, -0.5, size - 0.5)
    return at if mode == "zeros" else min(max(at, 0), size - 1)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    n, c, h, w = input.shape
    y = np.zeros((n, c, *grid.shape[1:3]))
    for b, i, j in np.ndindex(n, *grid.shape[1:3]):
        px, py = (_pixel(at, size, align_corners, padding_mode) for at, size in zip(grid[b, i, j], (w, h)))
        if mode == "nearest":
            near = [(np.round(py), np.round(px), 1.0)]
        else:
            near = [(q, p, _hat(py - q) * _hat(px - p)) for q in (math.floor(py), math.floor(py) + 1)
                    for p in (math.floor(px), math.floor(px) + 1)]
        for q, p, share in near:
            if 0 <= q < h and 0 <= p < w:
                y[b, :, i, j] += share * input[b, :, int(q), int(p)]
    return y


def _read(d):
    n = d.one_of(1, 2)
    grid = d.rng.uniform(-1.8, 1.8, (n, d.one_of(1, 2), d.one_of(1, 3), 2))
    return {"input": d.floats(n, d.one_of(1, 2), d.one_of(1, 2, 4), d.one_of(1, 3)), "grid": grid,
            "align_corners": d.one_of(True, False)} | d.options(mode=("bilinear", "nearest"),
                                                                padding_mode=("zeros", "border",
                                                                              "reflection"))


row(_read)(grid_sample)
