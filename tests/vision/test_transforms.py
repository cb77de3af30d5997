"""Transforms against explicit NumPy formulas and Pillow; the three image types agree, and random choices
follow the seed.
"""
import colorsys
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance

import flowedu as flow
from bounds import assert_mean
from flowedu.errors import ArgumentError
from flowedu.vision import transforms as T
from flowedu.vision.transforms import functional as F
from flowedu.vision.transforms.resample import nearest, weights

MODES = T.InterpolationMode


def pixels(h=9, w=7, c=3, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (h, w, c) if c else (h, w), np.uint8)


def as_tensor(a):
    """Convert (H, W, C) to a tensor (C, H, W) with the same values."""
    return flow.from_numpy(np.array((a[..., None] if a.ndim == 2 else a).transpose(2, 0, 1), order="C"))


def back(x):
    """Convert any image type to an ndarray (H, W, C)."""
    if isinstance(x, flow.Tensor):
        return x.numpy().transpose(1, 2, 0)
    a = np.asarray(x)
    return a[..., None] if a.ndim == 2 else a


def three(a):
    """Return the same image as ndarray, Pillow image, and tensor."""
    return {"array": a, "pil": Image.fromarray(a), "tensor": as_tensor(a)}


KINDS = ["array", "pil", "tensor"]
sizes = st.integers(1, 12)


# ---- exactly the same for all image types
# ------------------------------------------------------------------------------

def reference_pad(a, left, top, right, bottom, mode, fill=0):
    """Compute padding from the source position of each pixel."""
    h, w = a.shape[:2]

    def source(i, n):
        if mode == "edge":
            return min(max(i, 0), n - 1)
        period = 2 * n if mode == "symmetric" else max(2 * n - 2, 1)
        i %= period
        return i if i < n else (period - 1 - i if mode == "symmetric" else period - i)

    out = np.empty((h + top + bottom, w + left + right, a.shape[2]), a.dtype)
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            inside = 0 <= y - top < h and 0 <= x - left < w
            out[y, x] = a[y - top, x - left] if inside else fill if mode == "constant" else \
                a[source(y - top, h), source(x - left, w)]
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", F.PAD_MODES)
@given(st.tuples(*[st.integers(0, 3)] * 4))
def test_pad(kind, mode, sides):
    a = pixels(5, 6)
    np.testing.assert_array_equal(back(F.pad(three(a)[kind], sides, 7, mode)),
                                  reference_pad(a, *sides, mode, 7))


@pytest.mark.parametrize("kind", KINDS)
def test_pad_accepts_one_two_or_four_sizes_and_a_color(kind):
    a = pixels(4, 5)
    x = three(a)[kind]
    for padding, four in ((2, (2, 2, 2, 2)), ((1, 2), (1, 2, 1, 2)), ((1, 2, 3, 0), (1, 2, 3, 0)),
                          ([3], (3, 3, 3, 3))):
        np.testing.assert_array_equal(back(F.pad(x, padding)), reference_pad(a, *four, "constant", 0))
    np.testing.assert_array_equal(back(T.Pad(1, fill=(9, 8, 7))(x)),
                                  reference_pad(a, 1, 1, 1, 1, "constant", (9, 8, 7)))


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(-3, 9), st.integers(-3, 9), sizes, sizes)
def test_crop_fills_the_outside_with_black(kind, top, left, h, w):
    a = pixels(6, 7)
    large = np.zeros((40, 40, 3), np.uint8)
    large[12:18, 12:19] = a
    want = large[12 + top:12 + top + h, 12 + left:12 + left + w]
    np.testing.assert_array_equal(back(F.crop(three(a)[kind], top, left, h, w)), want)


@pytest.mark.parametrize("kind", KINDS)
@given(sizes, sizes, sizes, sizes)
def test_center_crop(kind, h, w, height, width):
    a = pixels(h, w)
    got = back(F.center_crop(three(a)[kind], (height, width)))
    assert got.shape == (height, width, 3)
    if height <= h and width <= w:
        top, left = round((h - height) / 2), round((w - width) / 2)
        np.testing.assert_array_equal(got, a[top:top + height, left:left + width])
    else:
        assert got.astype(int).sum() <= a.astype(int).sum()
        if height >= h and width >= w:          # the whole image with black around it
            top, left = (height - h) // 2, (width - w) // 2
            np.testing.assert_array_equal(got[top:top + h, left:left + w], a)
            assert got.astype(int).sum() == a.astype(int).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_flips(kind):
    a = pixels()
    np.testing.assert_array_equal(back(F.hflip(three(a)[kind])), a[:, ::-1])
    np.testing.assert_array_equal(back(F.vflip(three(a)[kind])), a[::-1])
    np.testing.assert_array_equal(back(T.RandomHorizontalFlip(1.0)(three(a)[kind])), a[:, ::-1])
    np.testing.assert_array_equal(back(T.RandomVerticalFlip(0.0)(three(a)[kind])), a)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("c", [0, 1, 3, 4])
def test_dimensions(kind, c):
    a = pixels(4, 6, c)
    x = {"array": a, "pil": Image.fromarray(a[..., 0] if c == 1 else a), "tensor": as_tensor(a)}[kind]
    assert F.get_dimensions(x) == [max(c, 1), 4, 6] and F.get_image_size(x) == [6, 4]


# ---- resize
# ------------------------------------------------------------------------------------------------------------

SMOOTH = [mode for mode in MODES if mode is not MODES.NEAREST]


def sinc(x):
    return math.sin(math.pi * x) / (math.pi * x) if x else 1.0


def reference_weights(source, target, mode, antialias=True):
    """Compute resampling weights from Pillow's documentation, pixel by pixel."""
    kernel = {"bilinear": lambda x: max(0, 1 - abs(x)),
              "bicubic": lambda x: 1.5 * abs(x) ** 3 - 2.5 * x * x + 1 if abs(x) < 1 else
              -0.5 * abs(x) ** 3 + 2.5 * x * x - 4 * abs(x) + 2 if abs(x) < 2 else 0,
              "box": lambda x: float(-0.5 < x <= 0.5),
              "hamming": lambda x: sinc(x) * (0.54 + 0.46 * math.cos(math.pi * x)) if abs(x) < 1 else 0,
              "lanczos": lambda x: sinc(x) * sinc(x / 3) if abs(x) < 3 else 0}[mode.value]
    scale = max(source / target, 1)
    out = np.array([[kernel((j - (i + 0.5) * (source / target) + 0.5) / scale) for j in range(source)]
                    for i in range(target)])
    return out / out.sum(1, keepdims=True)


@pytest.mark.parametrize("mode", SMOOTH)
@given(st.integers(1, 30), st.integers(1, 30))
def test_resampling_weights(mode, source, target):
    got, want = weights(source, target, mode, True), reference_weights(source, target, mode)
    if mode.value == "box":                  # a pixel on the border of a box may be rounded to either side
        places = (np.arange(source) + 0.5 - (np.arange(target)[:, None] + 0.5) * source
                  / target) / max(source / target, 1)
        clear = (np.abs(np.abs(places) - 0.5) > 1e-9).all(1)
        got, want = got[clear], want[clear]
    np.testing.assert_allclose(got, want, atol=1e-6)
    np.testing.assert_allclose(weights(source, target, mode, False).sum(1), 1, atol=1e-5)


@pytest.mark.parametrize("mode", list(MODES))
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.integers(1, 20),
       st.sampled_from([0, 3]))
def test_arrays_are_resized_as_pillow_does(mode, h, w, height, width, c):
    a = pixels(h, w, c) // 3 + 80           # far from 0 and 255, which bicubic would overshoot
    want = np.asarray(Image.fromarray(a).resize((width, height), getattr(Image.Resampling, mode.name)))
    got = F.resize(a, (height, width), mode)
    assert got.dtype == np.uint8 and got.shape == want.shape
    assert np.abs(got.astype(int) - want).max() <= {"nearest": 0, "bilinear": 1, "box": 1,
                                                    "hamming": 1}.get(mode.value, 2)
    np.testing.assert_array_equal(np.asarray(F.resize(Image.fromarray(a), (height, width), mode)), want)


@pytest.mark.parametrize("mode", SMOOTH)
@given(sizes, sizes, sizes, sizes)
def test_float_tensors_and_arrays(mode, h, w, height, width):
    a = np.random.default_rng(0).random((h, w, 3)).astype(np.float32)
    rows, columns = reference_weights(h, height, mode), reference_weights(w, width, mode)
    want = np.einsum("oh,hwc,pw->opc", rows, a, columns)
    np.testing.assert_allclose(back(F.resize(a, (height, width), mode)), want, atol=2e-5)
    np.testing.assert_allclose(back(F.resize(as_tensor(a), (height, width), mode)), want, atol=2e-5)


@pytest.mark.torch
@pytest.mark.parametrize("mode", [MODES.NEAREST, MODES.BILINEAR, MODES.BICUBIC])
@pytest.mark.parametrize("antialias", [False, True])
def test_tensors_against_torch(mode, antialias):
    torch = pytest.importorskip("torch")
    for size in ((5, 4), (20, 30), (9, 3), (1, 1)):
        a = np.random.default_rng(0).random((2, 3, 9, 7)).astype(np.float32)
        smooth = mode is not MODES.NEAREST
        want = torch.nn.functional.interpolate(torch.tensor(a), size, mode=mode.value, antialias=antialias
                                               and smooth, align_corners=False if smooth else None)
        got = F.resize(flow.tensor(a), size, mode, antialias=antialias)
        np.testing.assert_allclose(got.numpy(), want.numpy(), atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape, size, max_size, want", [
    ((10, 20), 5, None, (5, 10)), ((20, 10), 5, None, (10, 5)), ((7, 7), 3, None, (3, 3)),
    ((10, 25), 4, None, (4, 10)),
    ((10, 40), 5, 12, (3, 12)), ((40, 10), 5, 12, (12, 3)), ((10, 20), [6], None, (6, 12)),
    ((10, 20), (3, 4), None, (3, 4)), ((10, 13), 10, None, (10, 13))])
def test_size_after_resize(kind, shape, size, max_size, want):
    got = F.resize(three(pixels(*shape))[kind], size, max_size=max_size)
    assert back(got).shape[:2] == want and type(got) is type(three(pixels(*shape))[kind])


def test_resize_uint8_tensors_and_gradients():
    a = pixels(8, 8)
    got = F.resize(as_tensor(a), 4)
    assert got.dtype is flow.uint8 and np.abs(back(got).astype(int) - F.resize(a, 4)).max() <= 1
    x = flow.tensor(np.random.default_rng(0).random((3, 6, 6)).astype(np.float32), requires_grad=True)
    y = F.center_crop(F.pad(F.resize(x, (4, 4)), 1), 4)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy().sum(), 3 * 16, rtol=1e-5)     # rows of weights add up to 1


def test_nearest_uses_the_pixel_under_the_center_or_the_edge():
    assert nearest(4, 2, True).tolist() == [1, 3] and nearest(4, 2, False).tolist() == [0, 2]
    assert nearest(2, 5, True).tolist() == [0, 0, 1, 1, 1]


# ---- conversions
# -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("c", [0, 1, 3, 4])
def test_to_tensor(c):
    a = pixels(5, 4, c)
    got = T.ToTensor()(a)
    want = (a[..., None] if c == 0 else a).transpose(2, 0, 1) / np.float32(255)
    np.testing.assert_array_equal(got.numpy(), want, strict=True)
    assert got.is_contiguous()
    if c != 1:
        np.testing.assert_array_equal(T.ToTensor()(Image.fromarray(a)).numpy(), want, strict=True)


def test_to_tensor_keeps_other_dtypes():
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        a = (np.random.default_rng(0).random((3, 4, 2)) * 9).astype(dtype)
        np.testing.assert_array_equal(F.to_tensor(a).numpy(), a.transpose(2, 0, 1), strict=True)
    assert F.to_tensor(Image.new("1", (2, 3), 1)).numpy().tolist() == [[[1, 1]] * 3]
    assert F.to_tensor(Image.new("I;16", (2, 2), 999)).dtype is flow.int32
    assert F.to_tensor(Image.new("F", (2, 2), 0.5)).numpy().max() == 0.5


def test_to_tensor_copies_uint8_and_refuses_tensors():
    a = pixels()
    x = F.to_tensor(a)
    a[:] = 0
    assert x.numpy().max() > 0
    for bad in (flow.zeros(3, 4, 4), "cat.png", [[1]]):
        with pytest.raises(TypeError, match=r"pic should be PIL Image or ndarray. Got " + type(bad).__name__):
            T.ToTensor()(bad)


@pytest.mark.parametrize("c", [0, 1, 2, 3, 4])
def test_to_pil_image_and_back(c):
    a = pixels(5, 4, c)
    for x in (a, as_tensor(a)):
        img = T.ToPILImage()(x)
        assert img.mode == {0: "L", 1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[c]
        np.testing.assert_array_equal(F.pil_to_tensor(img).numpy(), as_tensor(a).numpy(), strict=True)
    floats = flow.tensor(np.linspace(0, 1, 20, dtype=np.float32).reshape(1, 4, 5))
    np.testing.assert_array_equal(np.asarray(F.to_pil_image(floats)),
                                  (floats.numpy()[0] * 255).astype(np.uint8))
    assert (F.to_pil_image(np.ones((2, 3), np.float32)).mode == "F"
            and F.to_pil_image(np.ones((2, 3), np.int32)).mode == "I")
    assert F.to_pil_image(a, "HSV").mode == "HSV" if c == 3 else True


@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from([0, 3]))
def test_pillow_to_tensor_to_pillow_is_the_same_picture(h, w, c):
    a = pixels(h, w, c)
    np.testing.assert_array_equal(np.asarray(F.to_pil_image(F.to_tensor(Image.fromarray(a)))), a)


def test_convert_image_dtype():
    x = flow.tensor(np.array([0, 1, 128, 255], np.uint8))
    y = T.ConvertImageDtype(flow.float32)(x)
    np.testing.assert_array_equal(y.numpy(), x.numpy() / np.float32(255))
    np.testing.assert_array_equal(F.convert_image_dtype(y, flow.uint8).numpy(), x.numpy())
    large = F.convert_image_dtype(x, flow.int32)
    np.testing.assert_array_equal(large.numpy(), x.numpy().astype(np.int64) << 23)
    np.testing.assert_array_equal(F.convert_image_dtype(large, flow.uint8).numpy(), x.numpy())


# ---- colours
# -----------------------------------------------------------------------------------------------------------

def test_grayscale_matches_pillow():
    a = pixels(30, 30)
    want = np.asarray(Image.fromarray(a).convert("L"))
    np.testing.assert_array_equal(T.Grayscale()(a), want)
    np.testing.assert_array_equal(np.asarray(T.Grayscale()(Image.fromarray(a))), want)
    assert np.abs(back(T.Grayscale()(as_tensor(a)))[..., 0].astype(int) - want).max() <= 1
    for x in three(a).values():
        grey = back(F.to_grayscale(x, 3))
        assert grey.shape == (30, 30, 3) and (grey == grey[..., :1]).all()
    f = a.astype(np.float32) / 255
    np.testing.assert_allclose(F.to_grayscale(f), f @ [0.299, 0.587, 0.114], atol=1e-6)
    np.testing.assert_allclose(F.to_grayscale(as_tensor(f)).numpy()[0], f @ [0.2989, 0.587, 0.114], atol=1e-6)


@pytest.mark.parametrize("what, enhancer", [("brightness", ImageEnhance.Brightness),
                                            ("contrast", ImageEnhance.Contrast),
                                            ("saturation", ImageEnhance.Color)])
@pytest.mark.parametrize("factor", [0.0, 0.3, 1.0, 1.7])
def test_adjusted_images_match_pillow(what, enhancer, factor):
    a = pixels(12, 12)
    want = np.asarray(enhancer(Image.fromarray(a)).enhance(factor)).astype(int)
    for kind, x in three(a).items():
        got = back(getattr(F, f"adjust_{what}")(x, factor))
        assert got.dtype == np.uint8 and np.abs(got - want).max() <= (2 if kind == "tensor" else 1), kind
    f = a.astype(np.float32) / 255
    for x in (f, as_tensor(f)):
        np.testing.assert_allclose(back(getattr(F, f"adjust_{what}")(x, factor)) * 255, want, atol=2.5)


def rotate_hue(colour, factor):
    """Return one float color with its hue rotated by Python's colorsys."""
    h, s, v = colorsys.rgb_to_hsv(*colour)
    return colorsys.hsv_to_rgb((h + factor) % 1, s, v)


@pytest.mark.parametrize("factor", [-0.5, -0.2, 0.0, 0.1, 0.4])
def test_adjust_hue(factor):
    a = np.concatenate([pixels(6, 5), np.full((6, 1, 3), 90, np.uint8), np.zeros((6, 1, 3), np.uint8),
                        np.eye(3, dtype=np.uint8)[np.arange(6) % 3][:, None] * 200], 1)
    f = (a / 255).astype(np.float32)
    want = np.array([[rotate_hue(c, factor) for c in row] for row in f.tolist()])
    for x in (f, as_tensor(f)):
        np.testing.assert_allclose(back(F.adjust_hue(x, factor)), want, atol=1e-5)
    for kind, x in three(a).items():
        got = back(F.adjust_hue(x, factor))
        assert (got.dtype == np.uint8 and np.abs(got / 255 - want).max() <= (0.05 if kind == "pil"
                                                                             else 0.0041)), kind
    for grey in three(a[..., 0]).values() if factor else ():
        np.testing.assert_array_equal(back(F.adjust_hue(grey, factor)).squeeze(), a[..., 0])
    x = as_tensor(f.astype(np.float64)).requires_grad_()
    F.adjust_hue(x, factor).square().sum().backward()
    assert x.grad.isfinite().all() and x.grad.abs().sum() > 0
    with pytest.raises(ValueError, match="hue_factor is not in"):
        F.adjust_hue(x, factor + 1.1)


@given(st.sampled_from([1, 3, 5, (3, 5), [7, 1]]), st.sampled_from([None, 0.3, 1.7, (0.5, 2.0)]),
       st.integers(0, 99))
def test_gaussian_blur(kernel, sigma, seed):
    """The sum over a pixel's neighbors; those beyond an edge are reflected."""
    a = np.random.default_rng(seed).integers(0, 256, (6, 5, 3), dtype=np.uint8)
    kx, ky = (kernel, kernel) if isinstance(kernel, int) else kernel
    sx, sy = sigma if isinstance(sigma, tuple) else (sigma or 0.15 * kx + 0.35, sigma or 0.15 * ky + 0.35)

    def bell(k, s):
        return np.exp(-((np.arange(k) - k // 2) ** 2) / (2 * s * s))

    w = np.outer(bell(ky, sy) / bell(ky, sy).sum(), bell(kx, sx) / bell(kx, sx).sum())
    wide = np.pad(a.astype(float), ((ky // 2,) * 2, (kx // 2,) * 2, (0, 0)), mode="reflect")
    want = np.array([[np.einsum("yx,yxc->c", w, wide[i:i + ky, j:j + kx]) for j in range(5)]
                     for i in range(6)])
    for kind, x in three(a).items():
        got = back(F.gaussian_blur(x, kernel, sigma))
        assert got.dtype == np.uint8 and np.abs(got - want).max() <= 0.501, kind
    f = (a / 255).astype(np.float32)
    for x in (f, as_tensor(f), as_tensor(f[..., 0])):
        got = back(F.gaussian_blur(x, kernel, sigma))
        np.testing.assert_allclose(got.reshape(6, 5, -1) * 255, want[..., :got.size // 30], atol=1e-3)


def test_gaussian_blur_refuses_and_draws():
    a = pixels(6, 5)
    for bad in ((2,), (0,), (3, 0.0), (3, -1.0), (11, 1.0)):
        with pytest.raises(ValueError, match="gaussian_blur"):
            F.gaussian_blur(a, *bad)
    with pytest.raises(ValueError, match="sigma does not fit"):
        T.GaussianBlur(3, (2.0, 1.0))
    flow.manual_seed(0)
    sharp = [float(T.GaussianBlur(5, (0.1, 3.0))(a).std()) for _ in range(50)]
    # At least one of 50 draws is in each outer third of the range, except for 3e-9 of the seeds.
    third = (3.0 - 0.1) / 3
    assert (max(sharp) > F.gaussian_blur(a, 5, 0.1 + third).std()
            and min(sharp) < F.gaussian_blur(a, 5, 3.0 - third).std())
    assert (T.GaussianBlur(5, 0.7)(a) == F.gaussian_blur(a, 5, 0.7)).all()


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_normalize(kind):
    a = np.random.default_rng(0).random((4, 5, 3)).astype(np.float32)
    mean, std = [0.1, 0.2, 0.3], [0.5, 0.6, 0.7]
    want = (a - np.float32(mean)) / np.float32(std)
    x = a if kind == "array" else as_tensor(a)
    np.testing.assert_allclose(back(T.Normalize(mean, std)(x)), want, rtol=1e-6)
    np.testing.assert_array_equal(back(x), a)
    np.testing.assert_allclose(back(F.normalize(x, [0.5], [2.0])), (a - 0.5) / 2, rtol=1e-6)
    copy = a.copy() if kind == "array" else as_tensor(a)
    assert F.normalize(copy, mean, std, inplace=True) is copy
    np.testing.assert_allclose(back(copy), want, rtol=1e-6)


def test_normalize_takes_batches_of_tensors():
    x = np.random.default_rng(0).random((2, 3, 4, 5)).astype(np.float32)
    got = F.normalize(flow.tensor(x), (0.1, 0.2, 0.3), (1, 2, 3)).numpy()
    np.testing.assert_allclose(got,
                               (x - np.float32([0.1, 0.2,
                                                0.3])[:, None, None]) / np.float32([1, 2, 3])[:, None, None],
                               rtol=1e-6)


# ---- randomness
# --------------------------------------------------------------------------------------------------------

PIPELINE = T.Compose([
    T.RandomResizedCrop(8), T.RandomHorizontalFlip(), T.RandomVerticalFlip(), T.ColorJitter(0.5, 0.5, 0.5),
    T.RandomGrayscale(0.5), T.RandomApply([T.RandomCrop(8, padding=2)]),
    T.RandomChoice([T.Pad(1), T.CenterCrop(10)]), T.RandomOrder([T.Pad(1), T.CenterCrop(4)]), T.ToTensor()])


def test_manual_seed_repeats_every_choice():
    img = Image.fromarray(pixels(20, 30))

    def draw(seed):
        flow.manual_seed(seed)
        return [PIPELINE(img).numpy() for _ in range(20)]

    first, again, other = draw(3), draw(3), draw(4)
    assert all(x.shape == y.shape and (x == y).all() for x, y in zip(first, again))
    assert any(x.shape != y.shape or (x != y).any() for x, y in zip(first, other))
    assert any(x.shape != first[0].shape or (x != first[0]).any() for x in first)


def test_the_three_kinds_draw_the_same():
    a = pixels(12, 12)
    t = T.Compose([T.RandomCrop(10, padding=3), T.RandomHorizontalFlip()])
    got = {}
    for kind, x in three(a).items():
        flow.manual_seed(11)
        got[kind] = [back(t(x)) for _ in range(10)]
    for x, y, z in zip(*got.values()):
        np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(x, z)


def test_random_crop_positions_are_equally_likely():
    flow.manual_seed(0)
    a = np.arange(12, dtype=np.uint8).reshape(3, 4)
    seen = np.bincount([int(T.RandomCrop(2)(a)[0, 0]) for _ in range(1200)], minlength=12)
    places = [0, 1, 2, 4, 5, 6]
    assert set(np.nonzero(seen)[0]) == set(places)
    assert ((seen[places] - 200) ** 2 / 200).sum() < 25         # chi-squared, 5 degrees of freedom
    assert T.RandomCrop((3, 4))(a).tolist() == a.tolist()


def test_random_crop_with_padding():
    flow.manual_seed(0)
    a = np.full((4, 4), 9, np.uint8)
    got = [T.RandomCrop(4, padding=2, fill=1)(a) for _ in range(100)]
    assert all(x.shape == (4, 4) and set(np.unique(x)) <= {1, 9} for x in got)
    assert {int((x == 9).sum()) for x in got} == {4, 6, 8, 9, 12, 16}
    assert T.RandomCrop(6, pad_if_needed=True, padding_mode="symmetric")(a).tolist() == [[9] * 6] * 6


def test_flip_probability():
    flow.manual_seed(0)
    a = np.array([[0, 1]], np.uint8)
    flipped = sum(int(T.RandomHorizontalFlip(0.3)(a)[0, 0]) for _ in range(2000))
    assert abs(flipped - 600) < 4 * math.sqrt(2000 * 0.3 * 0.7)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 1000))
def test_random_resized_crop_is_inside_and_within_the_limits(h, w, seed):
    flow.manual_seed(seed)
    a = np.zeros((h, w), np.uint8)
    scale, ratio = (0.2, 0.8), (0.5, 2.0)
    top, left, height, width = T.RandomResizedCrop.get_params(a, scale, ratio)
    assert 0 <= top <= h - height and 0 <= left <= w - width and height > 0 and width > 0
    assert T.RandomResizedCrop((3, 5), scale, ratio)(a).shape == (3, 5)


def test_random_resized_crop_areas_and_shapes():
    flow.manual_seed(0)
    a = np.zeros((400, 400), np.uint8)
    drawn = [T.RandomResizedCrop.get_params(a, (0.1, 0.5), (0.5, 2.0))[2:] for _ in range(300)]
    area = np.array([h * w for h, w in drawn]) / 400 ** 2
    shape = np.log([w / h for h, w in drawn])
    # Uniform in [0.1, 0.5] and in +-log(2); a side is rounded to a whole pixel. At least one of 300 draws is
    # in each outer fifteenth, except for 2e-9 of the seeds.
    rounding, edge = 1 / min(min(sides) for sides in drawn), np.log(2)
    for x, low, high in ((area, 0.1, 0.5), (shape, -edge, edge)):
        fifteenth = (high - low) / 15
        assert low - rounding <= x.min() < low + fifteenth and high - fifteenth < x.max() <= high + rounding
    assert_mean(area, 0.3, 0.4 / np.sqrt(12))
    assert_mean(shape, 0, 2 * edge / np.sqrt(12))
    wide = T.RandomResizedCrop.get_params(np.zeros((10, 100), np.uint8), (1.0, 1.0), (0.5, 2.0))
    assert wide == (0, 40, 10, 20), "none fits: the middle, as wide as allowed"


def test_color_jitter():
    flow.manual_seed(0)
    a = np.full((2, 2, 3), 100, np.uint8)
    means = [int(T.ColorJitter(brightness=0.5)(a).mean()) for _ in range(200)]
    assert 49 <= min(means) < 60 and 140 < max(means) <= 150
    assert (T.ColorJitter()(a) == a).all() and (T.ColorJitter(brightness=(2, 2))(a) == 200).all()
    red = np.full((2, 2, 3), (200, 0, 0), np.uint8)
    # toward yellow by green, toward violet by blue
    turns = [T.ColorJitter(hue=0.1)(red)[0, 0] for _ in range(100)]
    assert all(r in (199, 200) and min(g, b) == 0 and max(g, b) < 125 for r, g, b in map(tuple, turns))
    assert max(g for _, g, _ in turns) > 90 and max(b for _, _, b in turns) > 90
    assert (T.ColorJitter(hue=(-0.5, -0.5))(red)[0, 0] == T.ColorJitter(hue=(0.5, 0.5))(red)[0, 0]).all()
    for bad in (0.6, -0.1, (0.2, 0.1), (-0.6, 0)):
        with pytest.raises(ValueError, match="hue does not fit"):
            T.ColorJitter(hue=bad)


# ---- composition, messages
# ---------------------------------------------------------------------------------------------

def test_compose_lambda_and_repr():
    t = T.Compose([T.Resize(4), T.CenterCrop(3), T.RandomCrop(2, padding=1), T.Lambda(lambda x: x),
                   T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize((0.5,), (0.5,))])
    assert t(pixels()).shape == (3, 2, 2)
    assert repr(t) == """Compose(
    Resize(size=4, interpolation=bilinear, max_size=None, antialias=True)
    CenterCrop(size=(3, 3))
    RandomCrop(size=(2, 2), padding=1)
    Lambda()
    RandomHorizontalFlip(p=0.5)
    ToTensor()
    Normalize(mean=(0.5,), std=(0.5,))
)"""
    assert repr(T.RandomApply([T.ToTensor()], 0.2)) == "RandomApply(\n    p=0.2\n    ToTensor()\n)"


@pytest.mark.parametrize("call, error, words", [
    (lambda: T.Compose(T.ToTensor()), TypeError, "Compose([...])"),
    (lambda: T.Compose(["flip"]), TypeError, "cannot be called"),
    (lambda: T.Resize(0), ValueError, "a number above zero, or (height, width)"),
    (lambda: T.Resize("big"), ValueError, "size does not fit"),
    (lambda: T.Resize(4, "cubic"), ValueError, "unknown interpolation"),
    (lambda: F.resize(pixels(), (3, 3), max_size=5), ValueError, "max_size does not fit"),
    (lambda: F.resize("cat.png", 3), TypeError, "this is not an image"),
    (lambda: F.hflip(np.zeros(3)), ValueError, "(H, W) or (H, W, C)"),
    (lambda: F.hflip(flow.zeros(3)), ValueError, "(..., C, H, W)"),
    (lambda: F.pad(pixels(), (1, 2, 3)), ValueError, "padding does not fit"),
    (lambda: F.pad(pixels(), -1), ValueError, "padding does not fit"),
    (lambda: F.pad(pixels(), 1, padding_mode="mirror"), ValueError, "constant, edge, reflect, symmetric"),
    (lambda: F.pad(pixels(3, 3), 3, padding_mode="reflect"), ValueError, "too few pixels"),
    (lambda: F.pad(pixels(), 1, fill=(1, 2)), ValueError, "a number, or 3 of them"),
    (lambda: T.RandomCrop(30)(pixels()), ValueError,
     "Required crop size (30, 30) is larger than input image size (9, 7)"),
    (lambda: T.RandomHorizontalFlip(1.5), ValueError, "not a probability"),
    (lambda: T.RandomResizedCrop(3, scale=(0.5, 2)), ValueError, "scale does not fit"),
    (lambda: F.rgb_to_grayscale(pixels(), 2), ValueError, "either 1 or 3"),
    (lambda: F.rgb_to_grayscale(pixels(3, 3, 4)), ValueError, "no red, green and blue"),
    (lambda: F.adjust_contrast(pixels(), -1), ValueError, "below zero"),
    (lambda: F.normalize(pixels(), [0.5], [0.5]), TypeError, "put ToTensor() before Normalize"),
    (lambda: F.normalize(Image.new("L", (2, 2)), [0.5], [0.5]), TypeError, "put ToTensor() before Normalize"),
    (lambda: F.normalize(flow.zeros(3, 2, 2), [0.5], [0.0]), ValueError, "none of them 0"),
    (lambda: F.normalize(flow.zeros(3, 2, 2), [0.5, 0.5], [1.0]), ValueError, "1 or 3 numbers"),
    (lambda: F.to_pil_image(flow.zeros(2, 3, 4, 4)), ValueError, "2/3 dimensional"),
    (lambda: F.to_pil_image(np.zeros((4, 4, 5), np.uint8)), ValueError, "> 4 channels"),
    (lambda: F.to_pil_image(pixels(), "L"), ValueError, "mode 'L' does not fit"),
    (lambda: F.to_pil_image("x"), TypeError, "pic should be Tensor or ndarray"),
    (lambda: F.pil_to_tensor(pixels()), TypeError, "pic should be PIL Image"),
])
def test_invalid_arguments_are_refused(call, error, words):
    with pytest.raises(error, match=re.escape(words)):
        call()


def test_errors_are_flowedu_errors():
    with pytest.raises(ArgumentError) as e:
        T.Resize(-2)
    assert e.value.fix and e.value.expected and e.value.got == "-2"


# ---- transforms are modules
def test_a_sequential_is_a_compose():
    steps = [T.CenterCrop(4), T.ConvertImageDtype(flow.float32), T.Normalize((0.5,), (0.5,)),
             T.RandomHorizontalFlip(1.0)]
    x = flow.arange(64, dtype=flow.uint8).reshape(1, 8, 8)
    net = flow.nn.Sequential(*steps)
    np.testing.assert_array_equal(net(x).numpy(), T.Compose(steps)(x).numpy())
    assert repr(net).splitlines()[1] == "  (0): CenterCrop(size=(4, 4))"
    assert not list(net.parameters()) and not net.state_dict()
    both = flow.nn.ModuleList(steps[:2])
    assert T.RandomApply(both, p=1.0)(x).shape == (1, 4, 4)


@pytest.mark.parametrize("name", [n for n in dir(T) if isinstance(getattr(T, n), type)
                                  and n != "InterpolationMode"])
def test_every_transform_is_a_module(name):
    assert issubclass(getattr(T, name), flow.nn.Module)
