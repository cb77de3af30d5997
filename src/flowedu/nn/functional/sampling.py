"""Images read at places between their pixels: affine_grid and grid_sample."""
from __future__ import annotations

import warnings

from flowedu.blob import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.common import check_tensor, reshaped
from flowedu.ops.define import REGISTRY
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.promote import cast, scalar

_r = REGISTRY


def _line(n: int, corners: bool, dtype):
    """The middles of n pixels in [-1, 1]."""
    step, first = (2.0 / (n - 1) if n > 1 else 0.0, -1.0 if n > 1 else 0.0) if corners else (2.0 / n, 1.0 / n - 1.0)
    return cast(_r["range"](size=n, dtype=dt.int64), dtype) * step + first


def affine_grid(theta: Tensor, size, align_corners: bool | None = None) -> Tensor:
    """Where the pixels of an affinely moved image come from, for grid_sample.

    theta: (N, 2, 3) matrices. size: (N, C, H, W) of the result. Returns (N, H, W, 2): (x, y) in [-1, 1].
    """
    check_tensor("affine_grid", theta, "theta")
    size = tuple(size)
    if len(size) != 4 or tuple(theta.shape) != (size[0], 2, 3):
        raise ShapeError(f"affine_grid: Expected a batch of 2D affine matrices of shape Nx2x3 for size {size}",
                         expected="theta (N, 2, 3), size (N, C, H, W)", got=str(tuple(theta.shape)),
                         fix="theta of shape (N, 2, 3)")
    if min(size) < 1:
        raise ShapeError("affine_grid: Expected non-zero, positive output size", expected="sizes of 1 or more",
                         got=str(size), fix="check the sizes")
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior is align_corners=False. Please specify "
                      "align_corners=True if the old behavior is desired.", stacklevel=2)
    n, _, h, w = size
    xs, ys = _line(w, bool(align_corners), theta.dtype), _line(h, bool(align_corners), theta.dtype)
    one = _r["constant"](shape=(h, w, 1), value=1.0, dtype=theta.dtype)
    grid = [_r["expand"](reshaped(v, s), shape=(h, w, 1)) for v, s in ((xs, (1, w, 1)), (ys, (h, 1, 1)))]
    base = reshaped(_r["concat"](*grid, one, axis=2), (1, h * w, 3))
    y = _r["matmul"](_r["contiguous"](_r["expand"](base, shape=(n, h * w, 3))), theta, transpose_b=True)
    return reshaped(y, (n, h, w, 2))


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
    """The input read at the places in grid.

    Args:
        input: (N, C, H, W). grid: (N, Ho, Wo, 2): (x, y), -1 and 1 being the edges (align_corners: the outermost pixels).
        mode: "bilinear" or "nearest". padding_mode: what lies outside: "zeros", "border" or "reflection".

    Returns: (N, C, Ho, Wo).
    """
    check_tensor("grid_sample", input)
    if input.ndim != 4 or grid.ndim != 4 or grid.shape[3] != 2 or grid.shape[0] != input.shape[0]:
        raise ShapeError("grid_sample(): expected grid to have size 2 in last dimension, and one batch",
                         expected="input (N, C, H, W), grid (N, Ho, Wo, 2)",
                         got=f"{tuple(input.shape)}, {tuple(grid.shape)}", fix="make the grid with F.affine_grid")
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentError("grid_sample(): mode or padding_mode is unknown",
                            expected="bilinear or nearest; zeros, border or "
                            "reflection", got=f"{mode!r}, {padding_mode!r}",
                            fix="leave them out: bilinear and zeros are the defaults")
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior is align_corners=False. Please specify "
                      "align_corners=True if the old behavior is desired.", stacklevel=2)
    corners, (h, w) = bool(align_corners), input.shape[2:]
    x, y = (_places(reshaped(_r["slice"](grid, start=(0, 0, 0, i), stop=(*grid.shape[:3], i + 1), step=(1,) * 4),
                             tuple(grid.shape[:3])), size, corners, padding_mode) for i, size in ((0, w), (1, h)))
    if mode == "nearest":
        return _read(input, _r["round"](y.detach()), _r["round"](x.detach()))
    x0, y0 = _r["floor"](x.detach()), _r["floor"](y.detach())
    right, down = x - x0, y - y0
    total = None
    for yy, wy in ((y0, 1 - down), (y0 + 1, down)):
        for xx, wx in ((x0, 1 - right), (x0 + 1, right)):
            part = _read(input, yy, xx) * (wy * wx).unsqueeze(1)
            total = part if total is None else total + part
    return total


def _places(u, size: int, corners: bool, padding_mode: str):
    """Positions in pixels of coordinates in [-1, 1]."""
    at = (u + 1) * ((size - 1) / 2) if corners else ((u + 1) * size - 1) * 0.5
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, span = (0.0, size - 1.0) if corners else (-0.5, float(size))
        if span <= 0:
            return at * 0
        at = _r["abs"](at - low)
        turns = _r["floor"]((at / span).detach())
        extra = at - turns * span
        odd = E.eq(turns - _r["floor"](turns * 0.5) * 2, 1)
        at = E.where(odd, span - extra, extra) + low
    return E.clamp(at, 0.0, float(size - 1))


def _read(image, y, x):
    """image at rows y and columns x (N, Ho, Wo), whole numbers; 0 outside."""
    (n, c, h, w), (_, ho, wo) = image.shape, y.shape
    zero = scalar(0.0, y.dtype)
    inside = E.logical_and(E.logical_and(E.ge(y, zero), E.le(y, h - 1.0)), E.logical_and(E.ge(x, zero), E.le(x, w - 1.0)))
    flat = cast(E.clamp(y, 0.0, h - 1.0) * float(w) + E.clamp(x, 0.0, w - 1.0), dt.int64) if h * w < 2 ** 24 else \
        cast(E.clamp(y, 0.0, h - 1.0), dt.int64) * w + cast(E.clamp(x, 0.0, w - 1.0), dt.int64)
    index = _r["contiguous"](_r["expand"](reshaped(flat, (n, 1, ho * wo)), shape=(n, c, ho * wo)))
    got = reshaped(_r["dim_gather"](reshaped(image, (n, c, h * w)), index, axis=2), (n, c, ho, wo))
    return got * cast(inside, image.dtype).unsqueeze(1)
