"""grid_sample and affine_grid on images and volumes, against their definition, pixel by pixel and weight by
weight.
"""
import itertools

import numpy as np
import pytest

import flowedu as flow

F = flow.nn.functional


def position(u, n, corners):
    return (u + 1) / 2 * (n - 1) if corners else ((u + 1) * n - 1) / 2


def brought_inside(at, n, padding, corners):
    if padding == "reflection":
        low, high = (0, n - 1) if corners else (-0.5, n - 0.5)
        while not low <= at <= high:
            at = 2 * low - at if at < low else 2 * high - at
    return min(max(at, 0), n - 1) if padding != "zeros" else at


def keys(d):
    """Return Keys' cubic kernel with a = -0.75."""
    a, d = -0.75, abs(d)
    return ((a + 2) * d ** 3 - (a + 3) * d ** 2 + 1 if d <= 1 else a * (d ** 3 - 5 * d ** 2 + 8 * d - 4)
            if d < 2 else 0.0)


def sample_pixels(image, place, mode, padding, corners):
    """Return the channels of image (C, ...) at the coordinates `place`, last axis first."""
    sizes = image.shape[1:]
    at = [position(u, n, corners) for u, n in zip(reversed(place), sizes)]
    if mode != "bicubic":
        at = [brought_inside(a, n, padding, corners) for a, n in zip(at, sizes)]
    weight = {"nearest": lambda d: float(d == 0), "bilinear": lambda d: max(0.0, 1 - abs(d)),
              "bicubic": keys}[mode]
    at = [np.rint(a) for a in at] if mode == "nearest" else at
    total = np.zeros(image.shape[0])
    for pixel in itertools.product(*[range(int(np.floor(a)) - 1, int(np.floor(a)) + 3) for a in at]):
        w = np.prod([weight(a - p) for a, p in zip(at, pixel)])
        if mode == "bicubic":
            pixel = [brought_inside(p, n, padding, corners) for p, n in zip(pixel, sizes)]
        if all(0 <= p < n for p, n in zip(pixel, sizes)):
            total += w * image[(slice(None), *(int(p) for p in pixel))]
    return total


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(("mode", "rank"), [("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3),
                                            ("nearest", 3)])
def test_every_point_equals_the_definition(mode, rank, padding, corners):
    rng = np.random.default_rng(rank)
    x, grid = (rng.standard_normal((2, 3, *(3, 4, 5)[:rank])), rng.uniform(-1.6, 1.6,
                                                                           (2, *(2, 3, 2)[:rank], rank)))
    got = F.grid_sample(flow.tensor(x), flow.tensor(grid), mode, padding, corners).numpy()
    assert got.shape == (2, 3, *grid.shape[1:-1])
    for n in range(2):
        for p in np.ndindex(grid.shape[1:-1]):
            np.testing.assert_allclose(got[(n, slice(None), *p)],
                                       sample_pixels(x[n], grid[(n, *p)], mode, padding, corners), rtol=1e-9,
                                       atol=1e-12)


@pytest.mark.parametrize(("mode", "rank"), [("bilinear", 3), ("bicubic", 2)])
def test_gradients_equal_difference_quotients(mode, rank):
    rng = np.random.default_rng(5)
    x, grid = rng.standard_normal((1, 2, *(3,) * rank)), rng.uniform(-0.9, 0.9, (1, *(2,) * rank, rank))

    def f(a, b):
        return F.grid_sample(a, b, mode, "zeros", False)

    assert flow.autograd.gradcheck(f, [flow.tensor(a, requires_grad=True) for a in (x, grid)])


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("rank", [2, 3])
def test_affine_grid(rank, corners):
    """Multiply the matrix by the homogeneous coordinates of each pixel center, x first."""
    rng = np.random.default_rng(0)
    theta, sizes = rng.standard_normal((2, rank, rank + 1)), (2, 3, 4)[:rank]
    got = F.affine_grid(flow.tensor(theta), (2, 1, *sizes), corners).numpy()
    for p in np.ndindex(sizes):
        u = [2 * i / (n - 1) - 1 if corners else (2 * i + 1) / n - 1 for i, n in zip(p, sizes)]
        np.testing.assert_allclose(got[(slice(None), *p)], theta @ [*reversed(u), 1], rtol=1e-12)
    whole = F.affine_grid(flow.tensor(np.eye(rank, rank + 1)[None]), (1, 1, *sizes), corners)
    x = flow.tensor(rng.standard_normal((1, 2, *sizes)))
    np.testing.assert_allclose(F.grid_sample(x, whole, align_corners=corners).numpy(), x.numpy(), rtol=1e-12,
                               atol=1e-12)


def test_points_outside_the_image_are_zero():
    x = flow.ones(1, 1, 2, 2)
    grid = flow.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [5.0, 5.0]]]])
    assert F.grid_sample(x, grid, "nearest", align_corners=False).tolist() == [[[[0, 0, 0]]]]
