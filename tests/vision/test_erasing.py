"""RandomErasing: one rectangle with a size and shape within the limits is replaced, and the rest is
unchanged.
"""
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import flowedu as flow
from bounds import assert_mean, assert_std
from flowedu.errors import ArgumentError
from flowedu.vision import transforms as T


def draw_image(kind, h=20, w=24, channels=3, low=1):
    a = np.random.default_rng(0).integers(low, 256, (h, w, channels), np.uint8)
    if kind == "pil":
        return Image.fromarray(a)
    return a if kind == "array" else flow.from_numpy(np.ascontiguousarray(a.transpose(2, 0, 1)))


def to_hwc_array(img):
    """Return the image as an array (H, W, C)."""
    return img.numpy().transpose(1, 2, 0) if isinstance(img, flow.Tensor) else np.asarray(img)


@pytest.mark.parametrize("kind", ["array", "pil", "tensor"])
@given(seed=st.integers(0, 10 ** 6), low=st.floats(0.05, 0.3), more=st.floats(0, 0.3),
       narrow=st.floats(0.4, 1.0))
def test_a_rectangle_within_the_limits(kind, seed, low, more, narrow):
    flow.manual_seed(seed)
    img = draw_image(kind)
    before = to_hwc_array(img).copy()
    out = T.RandomErasing(p=1.0, scale=(low, low + more), ratio=(narrow, 1 / narrow))(img)
    assert type(out) is type(img) and (to_hwc_array(img) == before).all()
    gone = (to_hwc_array(out) == 0).all(2)
    rows, columns = np.flatnonzero(gone.any(1)), np.flatnonzero(gone.any(0))
    h, w = len(rows), len(columns)
    assert h and w and gone[rows[0]:rows[0] + h, columns[0]:columns[0] + w].all() and gone.sum() == h * w
    assert (to_hwc_array(out)[~gone] == before[~gone]).all()
    least, most = (math.sqrt(20 * 24 * area) for area in (low, low + more))  # before rounding to pixels
    assert (math.floor(least * math.sqrt(narrow)) <= min(h, w)
            and max(h, w) <= math.ceil(most / math.sqrt(narrow)))
    assert (h - 0.5) * (w - 0.5) <= most ** 2 and (h + 0.5) * (w + 0.5) >= least ** 2


@pytest.mark.parametrize("kind", ["array", "pil", "tensor"])
def test_erasing_covers_the_image_with_probability_p(kind):
    flow.manual_seed(0)
    img = draw_image(kind)
    erase, seen, times = T.RandomErasing(p=0.3, scale=(0.05, 0.2)), np.zeros((20, 24), int), 0
    for _ in range(400):
        gone = (to_hwc_array(erase(img)) == 0).all(2)
        seen, times = seen + gone, times + bool(gone.any())
    assert 85 <= times <= 155  # expected 120; more than 3 standard deviations
    assert seen.any(0).all() and seen.any(1).all()  # rectangles reach all four edges


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_erased_pixels_have_the_given_values(kind):
    flow.manual_seed(1)
    img, always = (draw_image(kind).astype("f4") if kind == "array" else draw_image(kind).float(),
                   {"p": 1.0, "scale": (0.3, 0.4)})
    for value, want in ((7, [7, 7, 7]), ((300.0, 400.0, 500.0), [300, 400, 500]), ([-1.0], [-1, -1, -1])):
        out = to_hwc_array(T.RandomErasing(value=value, **always)(img))
        assert (out == want).all(2).mean() > 0.2          # scale is at least 0.3; a side is rounded
    out = to_hwc_array(T.RandomErasing(value="random", **always)(img))
    drawn = out[out != to_hwc_array(img)]
    assert drawn.size > 300
    assert_mean(drawn, 0, 1)
    assert_std(drawn, 1)
    out = T.RandomErasing(inplace=True, **always)(img)
    assert out is img and (to_hwc_array(img) == 0).any()


def test_seed_batch_and_oversized_rectangle():
    img, erase = draw_image("tensor"), T.RandomErasing(p=1.0)
    outs = []
    for _ in range(2):
        flow.manual_seed(5)
        outs.append(erase(img).numpy())
    assert (outs[0] == outs[1]).all()
    batch = erase(flow.ones(2, 3, 20, 24))
    assert (batch[0] == batch[1]).all() and (batch == 0).any()
    assert (T.RandomErasing(p=1.0, scale=(1.0, 1.0))(img) == img).all()
    assert repr(erase) == "RandomErasing(p=1.0, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False)"


@pytest.mark.parametrize("options", [{"p": 2}, {"scale": (0.5, 0.2)}, {"scale": (0.5, 1.2)},
                                     {"ratio": (0, 1)},
                                     {"value": "white"}, {"value": None}, {"value": (1, 2)}], ids=str)
def test_invalid_arguments_are_refused(options):
    with pytest.raises(ArgumentError, match="(?s)RandomErasing.*expected.*got.*fix"):
        T.RandomErasing(**{"p": 1.0, "scale": (0.2, 0.3), **options})(draw_image("tensor"))
