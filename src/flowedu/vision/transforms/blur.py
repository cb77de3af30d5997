"""Gaussian blur as a product of matrices, rows @ image @ columns; the image is reflected at its edges."""
from __future__ import annotations

from functools import lru_cache

import numpy as np

from flowedu.errors import ArgumentError
from flowedu.tensor import Tensor, from_numpy
from flowedu.vision.transforms.tensor import through_float


@lru_cache(maxsize=256)
def matrix(size: int, kernel: int, sigma: float) -> np.ndarray:
    """Return the float32 matrix of a blur. `kernel` is an odd number of pixels, at most 2 * size - 1."""
    half = kernel // 2
    x = np.arange(-half, half + 1)
    w = np.exp(-0.5 * (x / sigma) ** 2)
    out = np.zeros((size, size))
    where = np.pad(np.arange(size), half, mode="reflect")
    for i in range(size):
        np.add.at(out[i], where[i:i + kernel], w / w.sum())
    return out.astype(np.float32)


def blurred(img: Tensor, kernel: tuple[int, int], sigma: tuple[float, float]) -> Tensor:
    """Blur a tensor (..., C, H, W). `kernel` and `sigma` are pairs for (x, y)."""
    h, w = img.shape[-2:]
    if kernel[0] > 2 * w - 1 or kernel[1] > 2 * h - 1:
        raise ArgumentError("gaussian_blur: the kernel reaches beyond the image's reflection",
                            got=repr(kernel),
                            expected=f"at most {2 * w - 1} and {2 * h - 1} for {w} x {h} pixels")

    def product(x: Tensor) -> Tensor:
        columns = from_numpy(np.ascontiguousarray(matrix(w, kernel[0], sigma[0]).T)).to(x.dtype)
        return from_numpy(matrix(h, kernel[1], sigma[1]).copy()).to(x.dtype).matmul(x.matmul(columns))

    return through_float(img, product)
