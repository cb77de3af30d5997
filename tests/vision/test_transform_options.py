"""Every option of a transform has an effect: a transform equals the function of its name with the same
options, and random choices follow the drawn numbers.
"""
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import flowedu as flow
from flowedu.vision import transforms as T
from flowedu.vision.transforms import functional as F
from nn.formulas.images import matrix

MODES = T.InterpolationMode
KINDS = ["array", "pil", "tensor"]


def draw_image(kind, h=7, w=6, seed=0):
    a = np.random.default_rng(seed).integers(0, 256, (h, w, 3), np.uint8)
    return a if kind == "array" else Image.fromarray(a) if kind == "pil" else \
        flow.from_numpy(np.ascontiguousarray(a.transpose(2, 0, 1)))


def to_array(x):
    return x.numpy() if isinstance(x, flow.Tensor) else np.asarray(x)


def assert_same_image(a, b):
    assert type(a) is type(b)
    np.testing.assert_array_equal(to_array(a), to_array(b), strict=True)


# ---- resizing without antialias
@pytest.mark.parametrize("mode", [MODES.BILINEAR, MODES.BICUBIC])
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_resize_without_antialias(mode, h, w, height, width, batch):
    """Each pixel is computed from the two or four nearest ones along each axis, even when the image
    shrinks.
    """
    a = np.random.default_rng(0).random((2, 3, h, w) if batch else (3, h, w)).astype(np.float32)
    rows, columns = (matrix(n, out, out / n, mode.value, False) for n, out in ((h, height), (w, width)))
    want = np.einsum("oh,...hw,pw->...op", rows, a, columns)
    got = F.resize(flow.tensor(a), (height, width), mode, antialias=False)
    np.testing.assert_allclose(got.numpy(), want, atol=2e-5)
    if not batch:
        array = F.resize(np.ascontiguousarray(a.transpose(1, 2, 0)), (height, width), mode, antialias=False)
        np.testing.assert_allclose(array, want.transpose(1, 2, 0), atol=2e-5)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_resize_tensors_to_the_nearest(h, w, height, width):
    """The pixel under the left edge is used, as in interpolate."""
    a = np.random.default_rng(0).random((3, h, w)).astype(np.float32)
    rows, columns = (np.arange(out) * n // out for n, out in ((h, height), (w, width)))
    got = F.resize(flow.tensor(a), (height, width), MODES.NEAREST)
    np.testing.assert_array_equal(got.numpy(), a[:, rows][:, :, columns])


# transforms and functions
SAME = [       # class, function, options of the class, options of both
    ("Resize", "resize", {"size": [(3, 9), 4, (12, 2)]},
     {"interpolation": list(MODES), "antialias": [True, False]}),
    ("Resize", "resize", {"size": [4]}, {"max_size": [5, None]}),
    ("CenterCrop", "center_crop", {"size": [3, (9, 2)]}, {}),
    ("Pad", "pad", {"padding": [1, (1, 2), (0, 1, 2, 3)]}, {"fill": [7, (1, 2, 3)],
                                                           "padding_mode": ["constant", "edge", "reflect",
                                                                            "symmetric"]}),
    ("Grayscale", "rgb_to_grayscale", {}, {"num_output_channels": [1, 3]}),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", SAME, ids=lambda r: r[0])
def test_a_transform_is_the_function_with_its_options(row, kind):
    name, function, made, options = row
    chosen = [[(k, v) for v in vs] for k, vs in made.items()] + \
             [[(k, v) for v in vs] + [None] for k, vs in options.items()]
    for found in itertools.product(*chosen):
        keywords = dict(g for g in found if g)
        x = draw_image(kind)
        first = [keywords[k] for k in made]
        rest = {k: v for k, v in keywords.items() if k not in made}
        assert_same_image(getattr(T, name)(**keywords)(x), getattr(F, function)(x, *first, **rest))


@pytest.mark.parametrize("kind", ["array", "tensor"])
@pytest.mark.parametrize("inplace", [True, False])
def test_normalize_in_place(kind, inplace):
    a = np.random.default_rng(0).random((3, 4, 5)).astype(np.float32)
    x = flow.tensor(a) if kind == "tensor" else a.transpose(1, 2, 0).copy()
    before = to_array(x).copy()
    mean, std = (0.1, 0.2, 0.3), (0.5, 1.0, 2.0)
    y = T.Normalize(mean, std, inplace)(x)
    assert (y is x) == inplace
    column = (3, 1, 1) if kind == "tensor" else (3,)
    want = (before - np.float32(mean).reshape(column)) / np.float32(std).reshape(column)
    np.testing.assert_allclose(to_array(y), want, rtol=1e-6)
    np.testing.assert_allclose(to_array(x), want if inplace else before, rtol=1e-6)


# randomness
@pytest.mark.parametrize("kind", KINDS)
def test_random_crop_options(kind):
    """The result is a crop of F.pad with the same options, at every possible position."""
    flow.manual_seed(0)
    x = draw_image(kind, 3, 4)
    for options in ({"padding": 1}, {"padding": (1, 2), "fill": 9}, {"padding": 1, "padding_mode": "reflect"},
                    {"padding": (0, 1, 2, 1), "fill": (1, 2, 3)}):
        padded = F.pad(x, options["padding"], options.get("fill", 0), options.get("padding_mode", "constant"))
        _, h, w = F.get_dimensions(padded)
        places = {to_array(F.crop(padded, i, j, 3, 3)).tobytes() for i in range(h - 2) for j in range(w - 2)}
        drawn = {to_array(T.RandomCrop(3, **options)(x)).tobytes() for _ in range(300)}
        assert drawn == places
    padded = F.pad(x, (2, 3), 5, "constant")                       # the missing size is added on both sides
    _, h, w = F.get_dimensions(padded)
    places = {to_array(F.crop(padded, i, j, 6, 6)).tobytes() for i in range(h - 5) for j in range(w - 5)}
    assert {to_array(T.RandomCrop(6, pad_if_needed=True, fill=5)(x)).tobytes() for _ in range(300)} == places


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 1000), mode=st.sampled_from(list(MODES)), antialias=st.booleans(),
       size=st.sampled_from([3, (9, 4)]))
def test_random_resized_crop_is_a_crop_resized(kind, seed, mode, antialias, size):
    x = draw_image(kind, 12, 11)
    flow.manual_seed(seed)
    box = T.RandomResizedCrop.get_params(x, (0.3, 0.9), (0.5, 2.0))
    flow.manual_seed(seed)
    got = T.RandomResizedCrop(size, (0.3, 0.9), (0.5, 2.0), mode, antialias)(x)
    assert_same_image(got, F.resize(F.crop(x, *box), F.pair("", "", size), mode, antialias=antialias))


def test_color_jitter_in_every_order(monkeypatch):
    """Three of the four adjustments are applied once each, in one of six equally likely orders, with factors
    from the whole range.
    """
    names = ("brightness", "contrast", "saturation")
    made, factors = [], {n: [] for n in names}
    for n in names:
        f = getattr(F, f"adjust_{n}")
        monkeypatch.setattr(F, f"adjust_{n}", lambda img, factor, n=n, f=f: (made.append((n, factor)),
                                                                             f(img, factor))[1])
    flow.manual_seed(0)
    t, x, orders = T.ColorJitter(0.5, (0.2, 0.4), 3.0), draw_image("array"), []
    for _ in range(600):
        made.clear()
        y = t(x)
        calls = list(made)
        orders.append(tuple(n for n, _ in calls))
        want = x
        for n, factor in calls:
            factors[n].append(factor)
            want = getattr(F, f"adjust_{n}")(want, factor)
        assert_same_image(y, want)
    counts = {o: orders.count(o) for o in itertools.permutations(names)}
    assert sum(counts.values()) == 600 and sum((c - 100) ** 2 / 100 for c in counts.values()) < 25
    for n, (low, high) in zip(names, ((0.5, 1.5), (0.2, 0.4), (0.0, 4.0))):
        assert (low <= min(factors[n]) < low + 0.03 * (high - low)
                and high - 0.03 * (high - low) < max(factors[n]) <= high)


def test_random_choices_are_equally_likely():
    """RandomApply, RandomChoice, RandomOrder, and RandomGrayscale, identified by marks that their transforms
    append.
    """
    flow.manual_seed(0)
    mark = [T.Lambda(lambda s, c=c: s + c) for c in "abc"]

    def counts(t, start="", n=900):
        made = [t(start) for _ in range(n)]
        return {k: made.count(k) for k in sorted(set(made))}

    def fits(found, shares, n=900):
        assert set(found) == set(shares)
        assert sum((found[k] - n * p) ** 2 / (n * p) for k, p in shares.items()) < 25

    fits(counts(T.RandomApply(mark, 0.2)), {"": 0.8, "abc": 0.2})
    fits(counts(T.RandomChoice(mark)), dict.fromkeys("abc", 1 / 3))
    fits(counts(T.RandomOrder(mark)), {"".join(o): 1 / 6 for o in itertools.permutations("abc")})
    x = draw_image("array")
    grey = sum(np.array_equal(T.RandomGrayscale(0.3)(x), F.rgb_to_grayscale(x, 3)) for _ in range(600))
    assert abs(grey - 180) < 5 * (600 * 0.3 * 0.7) ** 0.5
    for t, f in ((T.RandomHorizontalFlip, F.hflip), (T.RandomVerticalFlip, F.vflip)):
        turned = sum(np.array_equal(t(0.3)(x), f(x)) for _ in range(600))
        assert abs(turned - 180) < 5 * (600 * 0.3 * 0.7) ** 0.5
