"""flow.image and flow.detection against Pillow, PyTorch, and NumPy; eagerly and in jobs."""
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import flowedu as flow
import flowedu.typing as tp
from common import f32, fresh_session, refused
from flowedu.errors import ArgumentError, DataError, DTypeError, ShapeError
from flowedu.errors.extras import install
from flowedu.oneflow04.image import resample
from flowedu.oneflow04.image.decode import crop_window
from flowedu.oneflow04.image.detection import fill
from flowedu.ops.host import forget_states

__all__ = ["fresh_session"]


def draw_image(h, w, c=3, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (h, w, c), dtype=np.uint8)


def smooth(h, w):
    """Return a smooth colored image that survives JPEG compression."""
    y, x = np.mgrid[:h, :w]
    return np.stack([4 * x, 3 * y, 2 * (x + y)], axis=2).clip(0, 255).astype(np.uint8)


def encode(rgb, kind="PNG", **options):
    out = io.BytesIO()
    Image.fromarray(rgb.squeeze()).save(out, kind, **options)
    return out.getvalue()


def buffer(*items):
    return flow.TensorBuffer(list(items))


# ---- decode
@pytest.mark.parametrize("kind", ["PNG", "BMP"])
def test_decode_returns_the_encoded_pixels(kind):
    rgb = draw_image(5, 7)
    files = buffer(encode(rgb, kind), encode(rgb[::-1], kind))
    # BGR
    assert flow.image.decode(files)[1].tobytes() == np.ascontiguousarray(rgb[::-1, :, ::-1]).tobytes()
    assert np.array_equal(flow.image.decode(files, color_space="RGB")[0], rgb)
    gray = flow.image.decode(files, color_space="GRAY")[0]
    assert (gray.shape == (5, 7, 1) and np.array_equal(gray[:, :, 0],
                                                       np.asarray(Image.fromarray(rgb).convert("L"))))
    floats = flow.image_decode(files, dtype=flow.float, color_space="rgb")[0]
    assert floats.dtype == np.float32 and np.array_equal(floats, rgb)


def test_decode_reads_jpeg_and_signed_bytes():
    data = encode(smooth(40, 30), "JPEG", quality=95)
    signed = flow.image.decode(buffer(np.frombuffer(data, np.int8)), color_space="RGB")[0]
    assert np.array_equal(signed, np.asarray(Image.open(io.BytesIO(data))))
    assert np.abs(signed - smooth(40, 30).astype(int)).mean() < 3


def test_decode_reads_grey_16_bit_transparent_and_rotated_files():
    gray = draw_image(4, 5, 1)
    assert np.array_equal(flow.image.decode(buffer(encode(gray)))[0], np.repeat(gray, 3, axis=2))
    deep = np.arange(20, dtype=np.uint16).reshape(4, 5) * 3000
    assert np.array_equal(flow.image.decode(buffer(encode(deep)), color_space="GRAY")[0][:, :, 0], deep >> 8)
    rgba = draw_image(4, 5, 4)
    assert np.array_equal(flow.image.decode(buffer(encode(rgba)), color_space="RGB")[0], rgba[:, :, :3])
    exif = Image.Exif()
    exif[0x0112] = 6                                            # EXIF orientation 6: rotated by 90 degrees
    turned = flow.image.decode(buffer(encode(smooth(8, 16), "JPEG", exif=exif)))[0]
    assert turned.shape == (16, 8, 3)


@pytest.mark.parametrize("damage", [lambda d: b"not a picture", lambda d: d[:40], lambda d: b"",
                                    lambda d: d[:-30], lambda d: d[:60] + b"\xff" * 40 + d[100:]])
def test_damaged_bytes_name_the_instance(damage):
    good = encode(draw_image(9, 9))
    with refused(DataError, "instance 1", "bytes starting"):
        flow.image.decode(buffer(good, damage(good)))


def test_decode_refuses_invalid_arguments():
    with refused(DTypeError, "instance 0", "float32"):
        flow.image.decode(buffer(f32(4)))
    with refused(ArgumentError, "YUV", "BGR"):
        flow.image.decode(buffer(b"x"), color_space="YUV")
    with refused(DTypeError, "int32"):
        flow.image.decode(buffer(b"x"), dtype=flow.int32)
    with refused(DTypeError, "TensorBuffer"):
        flow.image.decode(flow.tensor(f32(3)))


def test_without_pillow_the_error_names_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with refused(NotImplementedError, install("image")):
        flow.image.decode(buffer(b"x"))


# ---- resampling
@pytest.mark.parametrize("kind, mode", [("bilinear", "bilinear"), ("bicubic", "bicubic"),
                                        ("nearest_neighbor", "nearest")])
@pytest.mark.parametrize("sizes", [(5, 7, 9, 11), (12, 9, 5, 4), (8, 6, 4, 3), (3, 4, 3, 9), (1, 1, 4, 4)])
def test_resampling_matches_pytorch(kind, mode, sizes):
    torch = pytest.importorskip("torch")
    h, w, height, width = sizes
    x = f32(h, w, 2) * 50
    given_ = torch.from_numpy(x.transpose(2, 0, 1)[None].copy())
    corners = {} if mode == "nearest" else {"align_corners": False}
    want = torch.nn.functional.interpolate(given_, (height, width), mode=mode,
                                           **corners)[0].numpy().transpose(1, 2, 0)
    assert np.allclose(resample.resize(x, height, width, kind), want, atol=1e-3)


def test_enlarging_matches_pillow_bilinear():
    x = draw_image(20, 31)
    want = np.asarray(Image.fromarray(x).resize((77, 43), Image.Resampling.BILINEAR)).astype(int)
    assert np.abs(resample.resize(x, 43, 77, "auto").astype(int) - want).max() <= 1


@given(st.integers(1, 40), st.integers(1, 40))
def test_area_weighs_every_input_pixel_alike(source, target):
    index, weight = resample.taps(source, target, "area")
    total = np.bincount(index.ravel(), weight.ravel(), minlength=source)
    assert np.allclose(weight.sum(axis=0), 1, atol=1e-5)
    if target <= source:
        assert np.allclose(total, target / source, atol=1e-5)


@given(st.sampled_from(resample.KINDS[1:]), st.integers(1, 30), st.integers(1, 30))
def test_weights_sum_to_one_and_cover_valid_pixels_only(kind, source, target):
    index, weight = resample.taps(source, target, kind)
    assert index.min() >= 0 and index.max() < source and index.shape == weight.shape == (len(index), target)
    assert np.allclose(weight.sum(axis=0), 1, atol=1e-5)


def test_area_is_the_mean_of_blocks_and_auto_uses_it_to_shrink():
    x = draw_image(12, 20)
    want = x.reshape(4, 3, 4, 5, 3).mean(axis=(1, 3))
    for kind in ("area", "auto"):
        assert np.abs(resample.resize(x, 4, 4, kind) - want).max() <= 0.5001
    assert np.array_equal(resample.resize(x, 12, 20, "bicubic"), x)


def test_integers_are_rounded_and_do_not_wrap():
    x = np.zeros((4, 4, 1), np.uint8)
    x[1:3] = 255                                                # bicubic overshoots at such edges
    y = resample.resize(x, 9, 9, "bicubic")
    assert (y.dtype == np.uint8 and y.max() == 255 and y[0, 0, 0] < 5
            and (np.diff(y[:4, 0, 0].astype(int)) >= 0).all())


# ---- Resize
def test_resize_to_a_fixed_size():
    a, b = draw_image(10, 20), draw_image(6, 3, seed=1)
    out, scale, new_size = flow.image.Resize(buffer(a, b), target_size=(8, 5))
    assert out.shape == (2, 5, 8, 3) and out.dtype is flow.uint8 and new_size is None
    assert np.array_equal(out.numpy()[1], resample.resize(b, 5, 8))
    assert np.allclose(scale.numpy(), [[8 / 20, 5 / 10], [8 / 3, 5 / 6]]) and scale.dtype is flow.float32
    floats = flow.image.resize(buffer(a), (8, 5), dtype=flow.float, interpolation_type="nn")[0]
    assert floats.dtype is flow.float32 and np.array_equal(floats.numpy()[0], resample.resize(a, 5, 8, "nn"))


@pytest.mark.parametrize("options, want", [
    ({"target_size": 50}, [(75, 50), (50, 100)]),
    ({"target_size": 50, "max_size": 60}, [(60, 40), (30, 60)]),
    ({"target_size": 60, "resize_side": "longer"}, [(60, 40), (30, 60)]),
    ({"target_size": 60, "resize_side": "longer", "min_size": 50}, [(75, 50), (50, 100)])])
def test_resize_keeping_the_ratio(options, want):
    pictures = buffer(draw_image(100, 150), draw_image(80, 40))
    out, scale, size = flow.image.Resize(pictures, keep_aspect_ratio=True, **options)
    assert isinstance(out, flow.TensorBuffer) and [a.shape for a in out] == [(h, w, 3) for w, h in want]
    assert size.numpy().tolist() == [list(s) for s in want] and size.dtype is flow.int32
    assert np.allclose(scale.numpy(), np.array(want) / [(150, 100), (40, 80)])
    again, size2, scale2 = flow.image.target_resize(pictures, **options)            # different argument order
    assert np.array_equal(size.numpy(), size2.numpy()) and np.array_equal(scale.numpy(), scale2.numpy())
    assert np.array_equal(again[0], out[0])


@pytest.mark.parametrize("old, new", [
    ({"color_space": "RGB", "resize_x": 8, "resize_y": 5}, {"target_size": (8, 5)}),
    ({"color_space": "RGB", "interp_type": "NN", "target_size": (8, 5)},
     {"target_size": (8, 5), "interpolation_type": "nn"}),
    ({"resize_shorter": 6}, {"target_size": 6, "keep_aspect_ratio": True})])
def test_deprecated_arguments_warn_and_return_only_the_images(old, new, capsys):
    x = buffer(draw_image(10, 20))
    got, want = flow.image.Resize(x, **old), flow.image.Resize(x, **new)[0]
    assert "WARNING" in capsys.readouterr().out
    assert np.array_equal(got[0] if isinstance(got, flow.TensorBuffer) else got.numpy()[0],
                          want[0] if isinstance(want, flow.TensorBuffer) else want.numpy()[0])


two = buffer(draw_image(4, 4), draw_image(4, 4, 1))


@pytest.mark.parametrize("options, error, words", [
    ({"target_size": 8}, ArgumentError, ("(width, height)", "(8, 8)")),
    ({"target_size": (8, 8.0)}, ArgumentError, ("8.0",)),
    ({"target_size": (8, 8), "keep_aspect_ratio": True}, ArgumentError, ("an int",)),
    ({"target_size": 8, "keep_aspect_ratio": True, "resize_side": "left"}, ArgumentError, ("left",)),
    ({"target_size": 8, "keep_aspect_ratio": True, "max_size": 4}, ArgumentError, ("max_size=4",)),
    ({"target_size": (8, 8), "interpolation_type": "lanczos"}, ArgumentError, ("lanczos", "bicubic")),
    ({"target_size": (8, 8), "interp_type": "Area"}, ArgumentError, ("Area", "Linear")),
    ({"target_size": (8, 8)}, ShapeError, ("instance 1", "(4, 4, 1)", "GRAY"))])
def test_resize_refuses_invalid_arguments(options, error, words):
    with refused(error, *words):
        flow.image.Resize(two, **options)


# batches
def test_batch_align_pads_to_the_largest():
    a, b = draw_image(5, 9), draw_image(7, 3, seed=1)
    for alignment, shape in ((4, (8, 12)), (0, (7, 9)), (1, (7, 9))):
        out = flow.image.batch_align(buffer(a, b), (16, 16, 3), flow.uint8, alignment).numpy()
        assert (out.shape == (2, *shape, 3) and np.array_equal(out[0, :5, :9],
                                                               a) and np.array_equal(out[1, :7, :3], b))
        assert out.sum() == a.sum() + b.sum()                   # the rest is zero
    with refused(ShapeError, "instance 0", "(8, 12, 3)"):
        flow.image.batch_align(buffer(a, b), (9, 9, 3), flow.uint8, 4)
    with refused(ArgumentError, "power of two", "6"):
        flow.image.batch_align(buffer(a), (9, 9, 3), flow.uint8, 6)
    with refused(DTypeError, "instance 0", "uint8", "float32"):
        flow.image.batch_align(buffer(a), (9, 9, 3), flow.float, 0)
    with refused(ShapeError, "(H, W, C)"):
        flow.image.batch_align(buffer(a), (1, 9, 9, 3), flow.uint8, 0)


def cmn_by_hand(x, mirror, h, w, y, x0, mean, std):
    """Compute crop_mirror_normalize with OneFlow's loops."""
    n, _, _, c = x.shape
    out = np.zeros((n, c, h, w), np.float32)
    for i in range(n):
        for r in range(h):
            for s in range(w):
                column = x0 + (w - 1 - s if mirror[i] else s)
                out[i, :, r, s] = (x[i, y + r, column].astype(np.float32) - np.float32(mean)) * (
                    1 / np.float32(std))
    return out


@pytest.mark.parametrize("channels, space", [(3, "BGR"), (1, "GRAY")])
def test_crop_mirror_normalize(channels, space):
    x = np.stack([draw_image(7, 9, channels, s) for s in range(3)])
    mirror = np.array([1, 0, 1], np.int8)
    mean, std = [123.68, 116.78, 103.94][:channels], [58.4, 57.1, 57.4][:channels]
    options = {"color_space": space, "mean": mean, "std": std, "crop_h": 4, "crop_w": 5, "crop_pos_x": 0.25}
    want = cmn_by_hand(x, mirror, 4, 5, int(3 * 0.5), int(4 * 0.25), mean, std)
    got = flow.image.CropMirrorNormalize(flow.tensor(x), flow.tensor(mirror), **options)
    assert (got.dtype is flow.float32 and got.shape == (3, channels, 4,
                                                        5) and np.allclose(got.numpy(), want, atol=1e-5))
    last = flow.image.CropMirrorNormalize(flow.tensor(x), flow.tensor(mirror), output_layout="NHWC",
                                          **options)
    assert np.allclose(last.numpy().transpose(0, 3, 1, 2), want, atol=1e-5)
    pictures = flow.image.crop_mirror_normalize(buffer(*x), flow.tensor(mirror), **options)
    assert np.array_equal(pictures.numpy(), got.numpy())
    whole = flow.image.CropMirrorNormalize(flow.tensor(x), color_space=space)
    assert np.array_equal(whole.numpy(), x.transpose(0, 3, 1, 2).astype(np.float32))


def test_crop_mirror_normalize_takes_pictures_of_many_sizes():
    a, b = draw_image(6, 6), draw_image(4, 10, seed=1)
    got = flow.image.CropMirrorNormalize(buffer(a, b), crop_h=4, crop_w=6, output_layout="NHWC").numpy()
    assert np.array_equal(got[0], a[1:5]) and np.array_equal(got[1], b[:, 2:8])
    with refused(ShapeError, "instance 1", "4 x 10"):
        flow.image.CropMirrorNormalize(buffer(a, b), crop_h=5, crop_w=5)


batch = flow.tensor(np.zeros((2, 4, 4, 3), np.uint8))


@pytest.mark.parametrize("args, options, error, words", [
    ((flow.tensor(f32(2, 4, 4, 3)),), {}, NotImplementedError, ("uint8", "float32")),
    ((batch,), {"color_space": "GRAY"}, ShapeError, ("(N, H, W, 1)", "(2, 4, 4, 3)")),
    ((batch,), {"crop_h": 5}, ShapeError, ("4 x 4",)),
    ((batch,), {"mean": [1.0, 2.0]}, ArgumentError, ("mean", "1 or 3")),
    ((batch,), {"std": [0.0]}, ArgumentError, ("std",)),
    ((batch,), {"output_layout": "CHWN"}, ArgumentError, ("CHWN",)),
    ((batch,), {"output_dtype": flow.int32}, NotImplementedError, ("int32",)),
    ((batch, flow.tensor(np.zeros(3, np.int8))), {}, ShapeError, ("mirror_blob", "int8[3]")),
    ((two,), {}, ArgumentError, ("crop_h",))])
def test_crop_mirror_normalize_refuses_invalid_arguments(args, options, error, words):
    with refused(error, *words):
        flow.image.CropMirrorNormalize(*args, **options)


# image-to-image ops
def test_normalize_takes_std_first():
    x = f32(4, 5, 3)
    got = flow.image.normalize(buffer(x), (2.0, 4.0, 8.0), (1.0, 2.0, 3.0))[0]
    assert np.allclose(got, (x - [1, 2, 3]) / [2, 4, 8], atol=1e-6) and got.dtype == np.float32
    with refused(DTypeError, "instance 0", "uint8"):
        flow.image.normalize(two[:1], (1.0,) * 3, (0.0,) * 3)
    with refused(ShapeError, "instance 0", "(4, 5, 3)"):
        flow.image.normalize(buffer(x), (1.0,), (0.0,))


def test_flip():
    x = draw_image(3, 4)
    want = {0: x, 1: x[:, ::-1], 16: x[::-1], 17: x[::-1, ::-1]}
    for code, y in want.items():
        assert np.array_equal(flow.image.flip(buffer(x), code)[0], y)
    codes = flow.tensor(np.array(list(want), np.int8))
    assert all(np.array_equal(a, b) for a, b in zip(flow.image.flip(buffer(x, x, x, x), codes),
                                                    want.values()))
    with refused(ArgumentError, "flip_code", "2"):
        flow.image.flip(buffer(x), 2)
    with refused(ArgumentError, "flip_code", "1 codes"):
        flow.image.flip(buffer(x), codes)


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0.1, 5),
       st.floats(0.1, 5), st.integers(0, 99))
def test_a_random_crop_is_inside_the_image(h, w, a1, a2, r1, r2, seed):
    area, ratio = sorted((a1, a2)), sorted((r1, r2))
    rows, columns = crop_window(np.random.default_rng(seed), h, w, area, ratio, 10)
    assert 0 <= rows.start < rows.stop <= h and 0 <= columns.start < columns.stop <= w


def test_a_random_crop_of_a_large_image_covers_the_limits():
    rng = np.random.default_rng(0)
    pieces = [crop_window(rng, 400, 500, (0.2, 0.5), (0.75, 1.5), 10) for _ in range(200)]
    sizes = np.array([(r.stop - r.start, c.stop - c.start) for r, c in pieces])
    areas, ratios = sizes.prod(axis=1) / 200_000, sizes[:, 1] / sizes[:, 0]
    # Sides are rounded to whole pixels. At least one of the 200 draws is in each outer sixth, except for
    # 2e-16 of the seeds.
    rounding = 1 / sizes.min()
    assert 0.2 * (1 - rounding) <= areas.min() < 0.25 < 0.45 < areas.max() <= 0.5 * (1 + rounding)
    assert ratios.min() >= 0.75 and ratios.max() <= 1.5              # the requested limits
    assert len({(r.start, c.start) for r, c in pieces}) > 150


def test_random_crop_follows_its_seed():
    x = buffer(*[draw_image(40, 50, seed=s) for s in range(4)])
    runs = []
    for seed in (3, 3, 4):
        forget_states()
        runs.append([[a.tobytes() for a in flow.image.random_crop(x, seed=seed)] for _ in range(2)])
    assert runs[0] == runs[1] != runs[2] and runs[0][0] != runs[0][1]
    assert flow.image_random_crop(x)[0].ndim == 3
    with refused(ArgumentError, "random_area", "[0, 1]"):
        flow.image.random_crop(x, random_area=[0, 1])


# detection: the example values of OneFlow 0.4's documentation
def test_boxes_follow_a_flip():
    boxes = np.array([[20, 40, 80, 160], [30, 50, 70, 100]], np.float32)
    size = flow.tensor(np.array([[480, 620]], np.int32))
    got = flow.detection.object_bbox_flip(buffer(boxes), size, 1)[0]
    assert got.tolist() == [[399, 40, 459, 160], [409, 50, 449, 100]]
    assert flow.object_bbox_flip(buffer(boxes), size, 16)[0].tolist() == [[20, 459, 80, 579],
                                                                          [30, 519, 70, 569]]
    twice = flow.object_bbox_flip(flow.object_bbox_flip(buffer(boxes), size, 17), size, 17)[0]
    assert np.array_equal(twice, boxes)
    with refused(ShapeError, "image_size", "(1, 2)"):
        flow.object_bbox_flip(buffer(boxes), flow.tensor(np.zeros((2, 2), np.int32)), 1)
    with refused(ShapeError, "instance 0", "(n, 4)"):
        flow.object_bbox_flip(buffer(boxes[:, :3]), size, 1)


def test_a_box_and_its_image_flip_together():
    x = np.zeros((6, 9, 1), np.uint8)
    x[1:4, 2:7] = 1
    box, size = np.array([[2, 1, 6, 3]], np.float32), flow.tensor(np.array([[9, 6]], np.int32))
    for code in (0, 1, 16, 17):
        left, top, right, bottom = flow.object_bbox_flip(buffer(box), size, code)[0][0].astype(int)
        y = flow.image.flip(buffer(x), code)[0]
        assert y[top:bottom + 1, left:right + 1].all() and y.sum() == 15


def test_boxes_and_outlines_are_scaled():
    scale = flow.tensor(np.array([[0.5, 2.0]], np.float32))
    assert flow.object_bbox_scale(buffer(np.array([[2, 3, 4, 5]], np.float32)),
                                  scale)[0].tolist() == [[1, 6, 2, 10]]
    points = buffer(np.array([[2, 3], [4, 5]], np.float32))
    assert flow.object_segmentation_polygon_scale(points, scale)[0].tolist() == [[1, 6], [2, 10]]
    size = flow.tensor(np.array([[10, 8]], np.int32))
    assert flow.object_segmentation_polygon_flip(points, size, 17)[0].tolist() == [[8, 5], [6, 3]]


def test_masks():
    square = np.array([[1, 1], [6, 1], [6, 5], [1, 5]], np.float32)
    hole = np.array([[3, 2.6], [4.4, 3], [4, 4]], np.float32)
    points = np.concatenate([square, hole, square + [2, 1]]).astype(np.float32)
    members = ((4, 0, 0), (3, 1, 0), (4, 0, 1))                 # points, polygon, object
    index = np.array([(i, polygon, thing) for n, polygon, thing in members for i in range(n)], np.int32)
    size = flow.tensor(np.array([[9, 8]], np.int32))
    (masks,) = flow.object_segmentation_polygon_to_mask(buffer(points), buffer(index), size)
    assert masks.shape == (2, 8, 9) and masks.dtype == np.int8
    want = np.zeros((8, 9))
    want[2:7, 3:9] = 1
    assert np.array_equal(masks[1], want) and masks[0][3, 3] == 1 and masks[0][1:6, 1:7].sum() == 30
    with refused(DataError, "instance 0", "sort"):
        flow.object_segmentation_polygon_to_mask(buffer(points), buffer(index[::-1].copy()), size)
    with refused(ShapeError, "instance 0", "10 rows"):
        flow.object_segmentation_polygon_to_mask(buffer(points), buffer(index[:-1]), size)


@given(st.lists(st.tuples(st.integers(-3, 15), st.integers(-3, 12)), min_size=3, max_size=7))
def test_a_pixel_is_in_the_mask_when_a_ray_from_it_crosses_an_odd_number_of_edges(points):
    mask = fill([np.array(points, np.float32)], 10, 13)
    ends = list(zip(points, points[1:] + points[:1]))
    for y in range(10):
        for x in range(13):
            crossings = sum((y0 <= y) != (y1 <= y) and x0 + (y - y0) * (x1 - x0) / (y1 - y0) <= x
                            for (x0, y0), (x1, y1) in ends)
            if crossings % 2:
                assert mask[y, x] == 1
            elif mask[y, x]:                                    # then it must be on the outline
                assert any(is_near_segment(x, y, *a, *b) for a, b in ends)


def is_near_segment(x, y, x0, y0, x1, y1):
    """Return True if the point (x, y) is within 0.71 pixels of the segment between the other two points."""
    d = np.array([x1 - x0, y1 - y0], float)
    t = np.clip(np.dot([x - x0, y - y0], d) / max(d @ d, 1e-9), 0, 1)
    return np.hypot(*(np.array([x - x0, y - y0]) - t * d)) < 0.71


# ---- in jobs
def test_from_files_to_a_batch_in_a_job():
    """The pipeline of OneFlow's documentation: encoded bytes as a tensor list, decoded, resized, normalized,
    then used in ops.
    """
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())

    normal = {"color_space": "RGB", "mean": [127.0], "std": [64.0]}

    @flow.global_function(function_config=config)
    def job(files: tp.ListListNumpy.Placeholder((3, 4000), flow.int8),
            mirror: tp.ListNumpy.Placeholder((3,), flow.int8)
            ) -> tuple[tp.ListNumpy, tp.ListNumpy, tp.ListListNumpy]:
        pictures = flow.image_decode(flow.tensor_list_to_tensor_buffer(files), color_space="RGB")
        resized, scale, none = flow.image.Resize(pictures, target_size=(8, 6))
        assert none is None and resized.shape == (3, 6, 8, 3) and resized.dtype is flow.uint8
        x = flow.image.CropMirrorNormalize(resized, mirror, **normal)
        assert x.shape == (3, 3, 6, 8) and x.dtype is flow.float32
        kept = flow.tensor_buffer_to_tensor_list(pictures, shape=(30, 30, 3), dtype=flow.uint8)
        return flow.math.relu(x), scale, kept

    mirror = np.array([0, 1, 0], np.int8)
    for run in range(2):
        rgb = [draw_image(5 + 3 * i, 9 - i - run, seed=i) for i in range(3)]
        files = [np.frombuffer(encode(a), np.byte).reshape(1, -1) for a in rgb]
        (x,), (scale,), (kept,) = job([files], [mirror])
        small = flow.image.Resize(buffer(*rgb), target_size=(8, 6))[0]
        want = flow.image.CropMirrorNormalize(small, flow.tensor(mirror), **normal).numpy()
        assert np.array_equal(x, np.maximum(want, 0)) and scale.shape == (3, 2)
        assert all(np.array_equal(a[0], b) for a, b in zip(kept, rgb))


def test_a_batch_of_varying_size_in_a_job():
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())

    @flow.global_function(function_config=config)
    def job(x: tp.ListListNumpy.Placeholder((2, 16, 16, 3), flow.float)) -> tp.ListNumpy:
        aligned = flow.image_batch_align(flow.tensor_list_to_tensor_buffer(x), (16, 16, 3), flow.float, 4)
        assert aligned.is_dynamic and aligned.shape == (2, 16, 16, 3)
        return flow.math.relu(aligned)

    for h, w in ((5, 9), (16, 16), (1, 2)):
        a, b = f32(1, h, w, 3), f32(1, 2, 2, 3)
        (got,) = job([[a, b]])
        want = flow.image.batch_align(buffer(a[0], b[0]), (16, 16, 3), flow.float, 4).numpy()
        assert np.array_equal(got, np.maximum(want, 0))


def test_a_random_crop_in_a_job_differs_from_run_to_run():
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())

    def make():
        flow.clear_default_session()

        @flow.global_function(function_config=config)
        def job(x: tp.ListListNumpy.Placeholder((1, 30, 30, 1), flow.float)) -> tp.ListListNumpy:
            y = flow.image.random_crop(flow.tensor_list_to_tensor_buffer(x), seed=5)
            return flow.tensor_buffer_to_tensor_list(y, (30, 30, 1), flow.float)

        x = f32(1, 30, 30, 1)
        return [job([[x]])[0][0].tobytes() for _ in range(3)]

    first = make()
    assert len(set(first)) == 3 and make() == first
