"""Crops of images that are not square: heights and widths are not mixed up.

Every pixel stores its own position, so a crop shows where it was taken.
"""
import itertools
import math

import numpy as np
import pytest
from PIL import Image

import flowedu as flow
from flowedu.vision import transforms as T
from flowedu.vision.transforms import draw
from flowedu.vision.transforms import functional as F

KINDS = ("array", "pil", "tensor")
PICTURES = [(5, 9), (9, 5), (1, 7), (7, 1), (4, 4)]
FILL = 255


def places(h, w, kind):
    """Return an image whose pixel (i, j) is 1 + i * w + j."""
    a = (1 + np.arange(h * w, dtype=np.uint8)).reshape(h, w)
    return {"array": a, "pil": Image.fromarray(a), "tensor": flow.tensor(a[None])}[kind]


def pixels(x):
    return x.numpy()[0] if isinstance(x, flow.Tensor) else np.asarray(x)


def corners(transform, x, h, w, n):
    """Return the distinct crops of n draws as {bytes: image}."""
    flow.manual_seed(0)
    found = {}
    for _ in range(n):
        y = pixels(transform(x))
        assert y.shape == (h, w)
        found[y.tobytes()] = y
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(2, 4), (4, 2), (3, 3), (1, 5), (5, 1)])
@pytest.mark.parametrize("shape", PICTURES)
def test_random_crops_are_all_windows_of_the_size(shape, size, kind):
    """Of n windows, 12 n draws miss one with probability below n * exp(-12) < 4e-4; the seed is fixed."""
    (h, w), (height, width) = shape, size
    x = places(h, w, kind)
    if height > h or width > w:
        with pytest.raises(ValueError, match="larger than input image size"):
            T.RandomCrop(size)(x)
        return
    a = pixels(x)
    windows = {a[i:i + height, j:j + width].tobytes()
               for i in range(h - height + 1) for j in range(w - width + 1)}
    assert set(corners(T.RandomCrop(size), x, height, width, 12 * len(windows))) == windows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(7, 4), (4, 7), (6, 6), (2, 8), (11, 11)])
@pytest.mark.parametrize("shape", [(3, 6), (6, 3)])
def test_pad_if_needed_pads_the_short_axis(shape, size, kind):
    (h, w), (height, width) = shape, size
    x = places(h, w, kind)
    down, across = max(height - h, 0), max(width - w, 0)
    a = np.pad(pixels(x), ((down, down), (across, across)), constant_values=FILL)
    windows = {a[i:i + height, j:j + width].tobytes()
               for i in range(a.shape[0] - height + 1) for j in range(a.shape[1] - width + 1)}
    transform = T.RandomCrop(size, pad_if_needed=True, fill=FILL)
    assert set(corners(transform, x, height, width, 12 * len(windows))) == windows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("padding, sides", [(1, (1, 1, 1, 1)), ((2, 1), (2, 1, 2, 1)),
                                            ((0, 3, 1, 2), (0, 3, 1, 2))])
@pytest.mark.parametrize("shape", [(2, 4), (4, 2)])
def test_padding_is_left_top_right_bottom(shape, padding, sides, kind):
    x = places(*shape, kind)
    left, top, right, bottom = sides
    want = np.pad(pixels(x), ((top, bottom), (left, right)), constant_values=FILL)
    np.testing.assert_array_equal(pixels(F.pad(x, padding, FILL)), want)
    np.testing.assert_array_equal(pixels(T.Pad(padding, FILL)(x)), want)
    np.testing.assert_array_equal(pixels(T.RandomCrop(want.shape, padding, fill=FILL)(x)), want)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(3, 5), (5, 3), (2, 2), (1, 8), (8, 1), (7, 9), 3])
@pytest.mark.parametrize("shape", PICTURES)
def test_center_crops_are_symmetric(shape, size, kind):
    """An odd difference puts one pixel more on one side; pixels outside of the image are 0."""
    (h, w), (height, width) = shape, size if isinstance(size, tuple) else (size, size)
    got = pixels(T.CenterCrop(size)(places(h, w, kind)))
    assert got.shape == (height, width)
    np.testing.assert_array_equal(got, pixels(F.center_crop(places(h, w, kind), size)))
    rows, columns = np.nonzero(got.any(1))[0], np.nonzero(got.any(0))[0]
    assert len(rows) == min(h, height) and len(columns) == min(w, width)
    for n, size_, found, first in ((h, height, rows, (got[rows[0], columns[0]] - 1) // w),
                                   (w, width, columns, (got[rows[0], columns[0]] - 1) % w)):
        before, after = int(first), n - len(found) - int(first)        # cropped image pixels
        assert abs(before - after) <= 1
        assert abs(int(found[0]) - (size_ - 1 - int(found[-1]))) <= 1      # padding zeros of the crop
    inner = got[np.ix_(rows, columns)].astype(int)
    assert (np.diff(inner, axis=1) == 1).all() and (np.diff(inner, axis=0) == w).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(5, 9), (9, 5)])
def test_crop_and_resized_crop_take_the_window(shape, kind):
    x = places(*shape, kind)
    a = pixels(x)
    for top, left, height, width in itertools.product((0, 2), (0, 1), (1, 3), (2, 4)):
        np.testing.assert_array_equal(pixels(F.crop(x, top, left, height, width)),
                                      a[top:top + height, left:left + width])
        whole = F.resized_crop(x, top, left, height, width, (height, width))
        np.testing.assert_array_equal(pixels(whole), a[top:top + height, left:left + width])
        assert pixels(F.resized_crop(x, top, left, height, width, (2, 7))).shape == (2, 7)


@pytest.fixture
def draws(monkeypatch):
    """Fixture that sets the value of draw.uniform(low, high) as a fraction of the range; `whole` and
    `log_uniform` depend on it.
    """
    def fix(*shares):
        row = itertools.cycle(shares)
        monkeypatch.setattr(draw, "uniform", lambda low=0.0, high=1.0: low + (high - low) * next(row))
    return fix


@pytest.mark.parametrize("shape", [(40, 90), (90, 40)])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("share", [0.0, 0.5, 1 - 2.0 ** -53])
def test_random_resized_crops_have_the_area_and_the_ratio(shape, ratio, share, draws):
    """`ratio` is width / height; the position is uniform between the first and the last possible one."""
    (h, w), scale = shape, 0.2
    area = h * w * scale
    height, width = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
    draws(share)
    got = T.RandomResizedCrop.get_params(np.zeros(shape, np.uint8), (scale, scale), (ratio, ratio))
    assert got == (int(share * (h - height + 1)), int(share * (w - width + 1)), height, width)
    assert 0 <= got[0] <= h - height and 0 <= got[1] <= w - width


@pytest.mark.parametrize("shape, ratio, want", [
    ((10, 100), (0.5, 2.0), (0, 40, 10, 20)), ((100, 10), (0.5, 2.0), (40, 0, 20, 10)),
    ((10, 100), (3.0, 4.0), (0, 30, 10, 40)), ((100, 10), (0.25, 1 / 3), (30, 0, 40, 10)),
    ((10, 12), (1.0, 1.5), (0, 0, 10, 12)), ((12, 10), (0.7, 0.9), (0, 0, 12, 10))])
def test_center_window_is_used_if_no_window_fits(shape, ratio, want, monkeypatch):
    """The window has the full height or width and the ratio nearest to the image's. No window with the whole
    area fits into an image of another ratio.
    """
    monkeypatch.setattr(draw, "log_uniform", lambda low, high: 1e6)
    assert T.RandomResizedCrop.get_params(np.zeros(shape, np.uint8), (1.0, 1.0), ratio) == want


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(5, 9), (9, 5)])
def test_random_resized_crops_of_the_size_are_windows(shape, kind, draws):
    """When no resizing is needed, the result equals F.crop."""
    x, size = places(*shape, kind), (2, 4)
    area, ratio = size[0] * size[1] / (shape[0] * shape[1]), size[1] / size[0]
    draws(0.0, 0.0, 0.5, 0.3)
    top, left = int(0.5 * (shape[0] - 1)), int(0.3 * (shape[1] - 3))
    got = T.RandomResizedCrop(size, (area, area), (ratio, ratio))(x)
    np.testing.assert_array_equal(pixels(got), pixels(x)[top:top + 2, left:left + 4])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(20, 45), (45, 20)])
@pytest.mark.parametrize("ratio", [0.5, 2.0])
@pytest.mark.parametrize("share", [0.0, 0.5, 1 - 2.0 ** -53])
def test_erased_rectangles_have_the_area_and_the_ratio(shape, ratio, share, kind, draws):
    """`ratio` is height / width, as in torchvision."""
    (h, w), scale = shape, 0.2
    height, width = round(math.sqrt(h * w * scale * ratio)), round(math.sqrt(h * w * scale / ratio))
    draws(share)
    a = np.full(shape, 9, np.uint8)
    x = {"array": a, "pil": Image.fromarray(a), "tensor": flow.tensor(a[None])}[kind]
    got = pixels(T.RandomErasing(1.0, (scale, scale), (ratio, ratio))(x))
    rows, columns = np.nonzero((got == 0).any(1))[0], np.nonzero((got == 0).any(0))[0]
    assert (len(rows), len(columns)) == (height, width) and (got == 0).sum() == height * width
    assert rows[0] == int(share * (h - height + 1)) and columns[0] == int(share * (w - width + 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape, size, want", [((40, 90), 20, (20, 45)), ((90, 40), 20, (45, 20)),
                                               ((40, 90), (30, 20), (30, 20)), ((90, 40), [20], (45, 20))])
def test_sizes_of_resized_images(shape, size, want, kind):
    a = np.zeros(shape, np.uint8)
    x = {"array": a, "pil": Image.fromarray(a), "tensor": flow.tensor(a[None])}[kind]
    assert F.get_dimensions(x) == [1, *shape] and F.get_image_size(x) == list(shape[::-1])
    assert F.get_dimensions(T.Resize(size)(x)) == [1, *want]


@pytest.mark.parametrize("shape, padding", [((2, 5), (4, 1)), ((5, 2), (1, 4))])
def test_reflections_need_the_pixels_of_their_own_axis(shape, padding):
    across, down = padding
    got = pixels(F.pad(places(*shape, "array"), padding, 0, "reflect"))
    np.testing.assert_array_equal(got, np.pad(pixels(places(*shape, "array")),
                                              ((down, down), (across, across)), "reflect"))
    with pytest.raises(ValueError, match="too few pixels"):
        F.pad(places(*shape[::-1], "array"), padding, 0, "reflect")
