"""vision.utils: grids of images, pixel by pixel, and image files, read back."""
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import flowedu as flow
from flowedu.errors import ArgumentError, FlowError, ShapeError
from flowedu.vision import utils


def draw_pixels(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 2, shape).astype("f4")


@given(n=st.integers(2, 7), c=st.sampled_from([1, 3, 4]), h=st.integers(1, 3), w=st.integers(1, 3),
       nrow=st.integers(1, 8), padding=st.integers(0, 2), as_list=st.booleans())
def test_every_pixel_of_a_grid(n, c, h, w, nrow, padding, as_list):
    """A pixel belongs to an image, counted in rows of nrow, or to the frame."""
    x = draw_pixels(n, c, h, w)
    given = [flow.tensor(each) for each in x] if as_list else flow.tensor(x)
    got = utils.make_grid(given, nrow, padding, pad_value=7.0).numpy()
    across = min(n, nrow)
    down = (n + across - 1) // across
    assert got.shape == (3 if c == 1 else c, down * (h + padding) + padding, across * (w + padding) + padding)
    for channel, y, left in np.ndindex(got.shape):
        (row, dy), (column, dx) = divmod(y - padding, h + padding), divmod(left - padding, w + padding)
        i = row * across + column
        inside = row >= 0 and column >= 0 and dy < h and dx < w and i < n and column < across
        assert got[channel, y, left] == (x[i, channel if c > 1 else 0, dy, dx] if inside else 7.0)


@given(limits=st.sampled_from([None, (0.0, 1.0), (-1.0, 1.0)]), each=st.booleans())
def test_normalize_scales_values_to_0_to_1(limits, each):
    x = draw_pixels(3, 3, 2, 2)
    got = utils.make_grid(flow.tensor(x), padding=0, normalize=True, value_range=limits,
                          scale_each=each).numpy()
    for i in range(3):
        low, high = limits or ((x[i].min(), x[i].max()) if each else (x.min(), x.max()))
        np.testing.assert_allclose(got[:, :, 2 * i:2 * i + 2], (x[i].clip(low, high) - low) / (high - low),
                                   rtol=1e-5, atol=1e-6)


def test_one_image_has_no_frame_and_inputs_are_unchanged():
    x = flow.rand(3, 4, 5, requires_grad=True)
    before = x.detach().numpy().copy()
    got = utils.make_grid(x, normalize=True)
    assert got.shape == (3, 4, 5) and not got.requires_grad
    got.fill_(9.0)
    assert (x.detach().numpy() == before).all() and utils.make_grid(flow.rand(4, 5)).shape == (3, 4, 5)


@given(c=st.sampled_from([1, 3]))
def test_a_file_has_the_nearest_bytes(c):
    x = draw_pixels(4, c, 3, 2)
    file = io.BytesIO()
    utils.save_image(flow.tensor(x), file, format="png", nrow=2, padding=0)
    got = np.asarray(Image.open(file)).transpose(2, 0, 1)
    want = np.floor(np.clip(utils.make_grid(flow.tensor(x), 2, 0).numpy() * 255.0 + 0.5, 0, 255))
    np.testing.assert_array_equal(got, want)


def test_the_extension_selects_the_format(tmp_path):
    for name in ("x.png", "x.jpg", "x.bmp"):
        utils.save_image(flow.rand(3, 8, 8), tmp_path / name)
        assert Image.open(tmp_path / name).size == (8, 8)


@pytest.mark.parametrize(("kind", "call"), [
    (ShapeError, lambda: utils.make_grid(flow.rand(2, 2, 2, 2, 2))), (ShapeError,
                                                                      lambda: utils.make_grid([])),
    (ShapeError, lambda: utils.make_grid([flow.rand(3, 2, 2), flow.rand(3, 2, 3)])),
    (TypeError, lambda: utils.make_grid(np.zeros((3, 2, 2)))), (TypeError, lambda: utils.make_grid([1])),
    (ArgumentError, lambda: utils.make_grid(flow.rand(2, 3, 2, 2), nrow=0)),
    (ArgumentError, lambda: utils.make_grid(flow.rand(2, 3, 2, 2), padding=-1)),
    (ArgumentError, lambda: utils.make_grid(flow.rand(2, 3, 2, 2), normalize=True, value_range=1.0))])
def test_invalid_arguments_are_refused(kind, call):
    with pytest.raises(kind, match="make_grid.*\n.*\n.*expected") as e:
        call()
    assert isinstance(e.value, FlowError) and e.value.fix
