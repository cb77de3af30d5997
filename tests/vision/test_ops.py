"""vision.ops against their definitions, element by element, and round trips of vision.io."""
import math
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import flowedu
import flowedu as flow
from flowedu import nn
from flowedu.errors import ArgumentError, DataError, FlowError, ShapeError
from flowedu.vision import io, ops


@st.composite
def boxes(draw, least=0, most=6):
    rows = draw(st.lists(st.tuples(*[st.integers(0, 12)] * 2, *[st.integers(1, 9)] * 2), min_size=least,
                         max_size=most))
    return np.array([(x, y, x + w, y + h) for x, y, w, h in rows], np.float32).reshape(-1, 4)


def cells(box):
    """Return the unit squares that an integer box covers."""
    x1, y1, x2, y2 = map(int, box)
    return {(x, y) for x in range(x1, x2) for y in range(y1, y2)}


@given(boxes(), boxes())
def test_areas_are_counted_squares(a, b):
    x, y = flow.tensor(a), flow.tensor(b)
    assert ops.box_area(x).tolist() == [len(cells(p)) for p in a]
    got, generalized = ops.box_iou(x, y).numpy(), ops.generalized_box_iou(x, y).numpy()
    assert got.shape == generalized.shape == (len(a), len(b))
    for i, j in np.ndindex(got.shape):
        p, q = cells(a[i]), cells(b[j])
        around = len(cells([*np.minimum(a[i, :2], b[j, :2]), *np.maximum(a[i, 2:], b[j, 2:])]))
        assert math.isclose(got[i, j], len(p & q) / len(p | q), rel_tol=1e-6)
        assert math.isclose(generalized[i, j], len(p & q) / len(p | q) - (around - len(p | q)) / around,
                            rel_tol=1e-5, abs_tol=1e-6)


@given(boxes(), st.permutations(["xyxy", "xywh", "cxcywh"]))
def test_box_formats_round_trip(a, forms):
    x = flow.tensor(a)
    for start, end in zip(("xyxy", *forms), (*forms, "xyxy")):
        x = ops.box_convert(x, start, end)
    np.testing.assert_allclose(x.numpy(), a, atol=1e-5)
    if len(a):
        assert ops.box_convert(flow.tensor([[1.0, 2.0, 4.0, 8.0]]), "xyxy",
                               "cxcywh").tolist() == [[2.5, 5.0, 3.0, 6.0]]


@given(boxes(), st.integers(1, 20), st.integers(1, 20), st.integers(1, 9))
def test_boxes_in_a_picture(a, height, width, least):
    x = flow.tensor(a)
    clipped = ops.clip_boxes_to_image(x, (height, width)).numpy()
    for box, got in zip(a, clipped):
        assert cells(got) == {(i, j) for i, j in cells(box) if i < width and j < height}
    assert ops.remove_small_boxes(x, least).tolist() == [
        i for i, (x1, y1, x2, y2) in enumerate(a) if min(x2 - x1, y2 - y1) >= least]


@given(boxes(1), st.data())
def test_nms_keeps_boxes_without_better_overlaps(a, data):
    """A box is kept if no better kept box of its class overlaps it."""
    n = len(a)
    scores = np.array(data.draw(st.permutations(range(n))), np.float32)
    kind = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    threshold = data.draw(st.sampled_from([0.0, 0.3, 0.5, 1.0]))
    iou = ops.box_iou(flow.tensor(a), flow.tensor(a)).numpy()
    for classes in (None, kind):
        args = (flow.tensor(a), flow.tensor(scores)) + (() if classes is None else (flow.tensor(classes),))
        got = (ops.nms if classes is None else ops.batched_nms)(*args, threshold).tolist()
        assert classes is not None or flow.nms(*args, threshold).tolist() == got
        assert got == sorted(got, key=lambda i: -scores[i])
        for i in range(n):
            rivals = [j for j in got if scores[j] > scores[i] and (classes is None or kind[i] == kind[j])]
            assert (i in got) == all(float(iou[i, j]) <= threshold for j in rivals)


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(0, 9))
def test_masks_to_boxes_equals_its_definition(n, h, w, seed):
    m = np.random.default_rng(seed).random((n, h, w)) < 0.4
    if not m.any((1, 2)).all():
        with pytest.raises(ShapeError):
            ops.masks_to_boxes(flow.tensor(m))
        return
    for mask, (x1, y1, x2, y2) in zip(m, ops.masks_to_boxes(flow.tensor(m)).tolist()):
        ys, xs = np.nonzero(mask)
        assert (x1, y1, x2, y2) == (xs.min(), ys.min(), xs.max(), ys.max())


def bilinear(a, y, x):
    """Sample an image as torchvision does: 0 more than one pixel outside, and the edge value in between."""
    h, w = a.shape
    if y < -1 or y > h or x < -1 or x > w:
        return 0.0
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    dy, dx = y - y0, x - x0
    return (a[y0, x0] * (1 - dy) + a[y1, x0] * dy) * (1 - dx) + (a[y0, x1] * (1 - dy) + a[y1, x1] * dy) * dx


@given(st.integers(0, 99), st.sampled_from([-1, 1, 2]), st.booleans(), st.sampled_from([0.5, 1.0]),
       st.booleans())
def test_roi_align_is_the_mean_of_its_samples(seed, ratio, aligned, scale, as_list):
    r = np.random.default_rng(seed)
    a = r.standard_normal((2, 2, 5, 6))
    rows = np.c_[[0, 1, 1], r.uniform(-3, 6, (3, 2)), r.uniform(4, 13, (3, 2))]
    given_ = [flow.tensor(rows[rows[:, 0] == i, 1:]) for i in range(2)] if as_list else flow.tensor(rows)
    x = flow.tensor(a, requires_grad=True)
    got = ops.roi_align(x, given_, (2, 3), scale, ratio, aligned)
    assert tuple(got.shape) == (3, 2, 2, 3)
    for k, (image, *box) in enumerate(rows):
        x1, y1, x2, y2 = (v * scale - 0.5 * aligned for v in box)
        w, h = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1), max(y2 - y1, 1))
        ny, nx = (ratio if ratio > 0 else max(math.ceil(n), 0) for n in (h / 2, w / 3))
        for c, i, j in np.ndindex(2, 2, 3):
            samples = [bilinear(a[int(image), c], y1 + (i + (p + 0.5) / ny) * h / 2,
                                x1 + (j + (q + 0.5) / nx) * w / 3)
                       for p in range(ny) for q in range(nx)]
            assert math.isclose(got[k, c, i, j].item(), sum(samples) / max(len(samples), 1), rel_tol=1e-9,
                                abs_tol=1e-9)
    weights = flow.tensor(r.standard_normal((3, 2, 2, 3)))
    (got * weights).sum().backward()                     # linear in the features
    slope = (x.grad * x.detach()).sum().item()
    assert math.isclose(slope, (got.detach() * weights).sum().item(), rel_tol=1e-9, abs_tol=1e-9)
    assert flow.equal(ops.RoIAlign((2, 3), scale, ratio, aligned)(x, given_), got)
    assert as_list or flow.equal(flow.roi_align(x, given_, scale, 2, 3, ratio, aligned), got)


def test_roi_align_of_empty_and_invalid_input():
    x = flow.ones(1, 3, 4, 4)
    assert tuple(ops.roi_align(x, [flow.zeros(0, 4)], 7).shape) == (0, 3, 7, 7)
    for bad in (flow.zeros(2, 4), flow.ones(1, 5), [flow.zeros(1, 4)] * 2, "boxes"):
        with pytest.raises(FlowError):
            ops.roi_align(x, bad, 7)


@given(st.integers(0, 99), st.sampled_from([-1.0, 0.25, 0.8]), st.sampled_from([0.0, 1.0, 2.0]))
def test_focal_loss(seed, alpha, gamma):
    r = np.random.default_rng(seed)
    a, t = r.standard_normal(6) * 3, r.integers(0, 2, 6).astype(float)
    p = np.where(t == 1, 1 / (1 + np.exp(-a)), 1 / (1 + np.exp(a)))
    want = -np.log(p) * (1 - p) ** gamma * (1 if alpha < 0 else np.where(t == 1, alpha, 1 - alpha))
    x, y = flow.tensor(a), flow.tensor(t)
    np.testing.assert_allclose(ops.sigmoid_focal_loss(x, y, alpha, gamma).numpy(), want, rtol=1e-9)
    for how in ("mean", "sum"):
        assert math.isclose(ops.sigmoid_focal_loss(x, y, alpha, gamma, how).item(), getattr(want, how)(),
                            rel_tol=1e-9)


def test_blocks_have_the_documented_layers():
    x = flow.randn(2, 4, 6, 6)
    block = ops.Conv2dNormActivation(4, 8, 5, 2, dilation=2)
    assert ([type(m) for m in block] == [nn.Conv2d, nn.BatchNorm2d, nn.ReLU]
            and tuple(block(x).shape) == (2, 8, 3, 3))
    assert block[0].bias is None and ops.Conv2dNormActivation(4, 8, norm_layer=None)[0].bias is not None
    squeeze = ops.SqueezeExcitation(4, 2)
    scale = squeeze.fc2(squeeze.fc1(x.mean((2, 3), keepdim=True)).relu()).sigmoid()
    np.testing.assert_allclose(squeeze(x).detach().numpy(), (x * scale).detach().numpy(), rtol=1e-5)
    mlp = ops.MLP(4, [5, 3], nn.LayerNorm, dropout=0.1)
    assert [type(m) for m in mlp] == [nn.Linear, nn.LayerNorm, nn.ReLU, nn.Dropout, nn.Linear, nn.Dropout]
    assert tuple(ops.Permute([0, 2, 3, 1])(x).shape) == (2, 6, 6, 4)
    norm, frozen = nn.BatchNorm2d(4).eval(), ops.FrozenBatchNorm2d(4)
    norm.running_mean.copy_(flow.randn(4)), norm.running_var.copy_(flow.rand(4) + 0.5)
    frozen.load_state_dict({k: v for k, v in norm.state_dict().items() if k != "num_batches_tracked"})
    np.testing.assert_allclose(frozen(x).numpy(), norm(x).detach().numpy(), atol=1e-5)
    assert not [*frozen.parameters()]


@given(st.sampled_from(["row", "batch"]), st.sampled_from([0.0, 0.3, 1.0]))
def test_stochastic_depth(mode, p):
    x = flow.ones(64, 2)
    got = ops.StochasticDepth(p, mode)(x).numpy()
    rows = {tuple(r) for r in got}
    whole = np.float32(1.0) / np.float32(1 - p) if p < 1 else 1.0
    assert all(r[0] == r[1] and (r[0] == 0 or math.isclose(r[0], whole, rel_tol=1e-6)) for r in rows)
    assert len(rows) == (2 if mode == "row" and p == 0.3 else 1) and (p != 0 or rows == {(1.0, 1.0)})
    assert p < 1 or rows == {(0.0, 0.0)}
    assert ops.StochasticDepth(p, mode).eval()(x) is x


# ---- files
@given(channels=st.sampled_from([1, 3]), h=st.integers(1, 5), w=st.integers(1, 5), seed=st.integers(0, 9))
def test_a_png_round_trips(tmp_path_factory, channels, h, w, seed):
    x = flow.tensor(np.random.default_rng(seed).integers(0, 256, (channels, h, w), dtype=np.uint8))
    path = tmp_path_factory.mktemp("pictures") / "a.png"
    io.write_png(x, path)
    assert flow.equal(io.read_image(str(path)), x)
    assert flow.equal(io.decode_image(flow.tensor(np.frombuffer(path.read_bytes(), np.uint8).copy())), x)
    assert tuple(io.read_image(path, io.ImageReadMode.RGB).shape) == (3, h, w)
    assert tuple(io.read_image(path, "GRAY").shape) == (1, h, w)


def test_16_bits_become_8():
    a = np.arange(0, 65536, 4097, dtype=np.uint16).reshape(4, 4)
    data = BytesIO()
    Image.fromarray(a).save(data, "PNG")
    assert io.decode_image(flow.tensor(np.frombuffer(data.getvalue(),
                                                     np.uint8).copy()))[0].tolist() == (a >> 8).tolist()


@given(st.data())
def test_truncated_files_are_refused(data):
    whole = BytesIO()
    kind = data.draw(st.sampled_from(["PNG", "BMP", "GIF"]))
    Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(whole, kind)
    part = whole.getvalue()[:data.draw(st.integers(0, len(whole.getvalue()) // 2))]
    with pytest.raises(DataError):
        io.decode_image(flow.tensor(np.frombuffer(part, np.uint8).copy()))


def test_files_that_are_not_images(tmp_path):
    path = tmp_path / "a.png"
    io.write_png(flow.zeros(3, 9, 9, dtype=flow.uint8), path)
    before = path.read_bytes()
    with pytest.raises(ShapeError):
        io.write_png(flow.zeros(3, 9, 9), path)
    assert path.read_bytes() == before and [*tmp_path.iterdir()] == [path]
    path.write_bytes(before[:len(before) // 2])
    with pytest.raises(DataError):
        io.read_image(path)
    with pytest.raises(FileNotFoundError):
        io.read_image(tmp_path / "none.png")
    with pytest.raises(ArgumentError):
        io.decode_image(flow.tensor(np.frombuffer(before, np.uint8).copy()), "COLOUR")
    io.write_jpeg(flow.full((3, 8, 8), 100, dtype=flow.uint8), tmp_path / "b.jpg")
    assert (io.read_image(tmp_path / "b.jpg").float() - 100).abs().max() < 3


def test_under_torchvisions_name():
    with flowedu.mock.enable("torch"):
        from torchvision import io as their_io
        from torchvision.io.image import read_image
        from torchvision.ops import nms, roi_align
        from torchvision.ops.boxes import box_iou
        from torchvision.ops.misc import FrozenBatchNorm2d
    assert (nms, roi_align, box_iou) == (ops.nms, ops.roi_align, ops.box_iou)
    assert FrozenBatchNorm2d is ops.FrozenBatchNorm2d and their_io.read_image is read_image is io.read_image
