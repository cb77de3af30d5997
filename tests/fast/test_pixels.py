"""The C loops over pixels, the decoder of small JPEG files, and threads: exactly the results of NumPy,
Pillow, and one thread.
"""
import io
from concurrent import futures

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

import flowedu as flow
from common import refused
from flowedu.errors import DataError, ShapeError
from flowedu.oneflow04.image import _pixels, decode, resample, threads
from flowedu.utils import pictures

sizes = st.integers(1, 24)
SPECIAL = [0.0, -0.0, 1e30, -1e-42, 254.5, np.inf, -np.inf, np.nan]


def same_bits(a, b):
    """Return True if a and b are equal, including the signs of zeros; all NaNs are considered equal."""
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f") and np.array_equal(
        np.signbit(a)[a == a], np.signbit(b)[b == b])


def pixels(seed, shape, dtype, special=()):
    rng = np.random.default_rng(seed)
    if dtype == np.uint8:
        return rng.integers(0, 256, shape, dtype=np.uint8)
    x = (rng.standard_normal(shape) * 200).astype(dtype)
    return np.where(rng.random(shape) < 0.1, rng.choice(special, shape), x).astype(dtype) if special else x


# ---- resizing
@settings(max_examples=300)
@given(sizes, sizes, sizes, sizes, st.integers(1, 5), st.sampled_from(["bilinear", "bicubic", "area"]),
       st.sampled_from([(np.uint8, np.uint8), (np.uint8, np.float32), (np.float32, np.float32),
                        (np.float32, np.uint8)]),
       st.booleans(), st.integers(0, 99))
@example(1, 1, 24, 24, 1, "bicubic", (np.float32, np.float32), True, 0)
@example(24, 24, 7, 5, 3, "area", (np.float32, np.float32), True, 1)
def test_resizing_has_the_bits_of_numpy(h, w, height, width, channels, kind, types, special, seed):
    x = pixels(seed, (h, w, channels), types[0], SPECIAL[:None if types[1] == np.float32 else 5] if special
               else ())
    out = np.empty((height, width, channels), types[1])
    with np.errstate(invalid="ignore", over="ignore"):
        assert resample.resize(x, height, width, kind, out) is out
        want = x if (h, w) == (height, width) else resample.blended(x, height, width, kind)
        assert same_bits(out, resample.rounded(want, out.dtype))
        mirrored = x[:, ::-1]
        assert same_bits(*(resample.resize(y, height, width, kind) for y in (mirrored, mirrored.copy())))


@pytest.mark.parametrize("dtype", [np.int16, np.float64, np.int32])
def test_other_types_are_resized_too(dtype):
    x = pixels(0, (9, 7, 2), np.uint8)
    for kind in resample.KINDS:
        y = resample.resize(x.astype(dtype), 4, 11, kind)
        assert y.dtype == dtype and np.abs(y.clip(0, 255) - resample.resize(x, 4, 11, kind)).max() < 0.501


@pytest.mark.parametrize("wrong", [
    lambda x, y, a, b: (x[1:], y, a, b), lambda x, y, a, b: (x, y[:, 1:], a, b),
    lambda x, y, a, b: (x, y, b, a),
    lambda x, y, a, b: (x.astype(np.int16), y, a, b), lambda x, y, a, b: (x, y.astype(">f4"), a, b),
    lambda x, y, a, b: (x[0], y, a, b), lambda x, y, a, b: (x[:, ::-1], y, a, b)])
def test_blend_refuses_mismatched_arguments(wrong):
    rows, columns = (_pixels.Axis(n, *resample.taps(n, m, "area")) for n, m in ((6, 3), (8, 5)))
    x, y = np.zeros((6, 8, 2), np.uint8), np.zeros((3, 5, 2), np.float32)
    _pixels.blend(x, y, rows, columns)
    with pytest.raises(ValueError, match="blend"):
        _pixels.blend(*wrong(x, y, rows, columns))
    with pytest.raises(ValueError, match="Axis"):
        _pixels.Axis(5, *resample.taps(6, 3, "area"))


# ---- tables
@given(sizes, sizes, st.sampled_from([("GRAY", 1), ("BGR", 3)]), st.sampled_from(["NCHW", "NHWC"]),
       st.booleans(),
       st.lists(st.floats(-300, 300), min_size=3, max_size=3), st.lists(st.floats(0.01, 300), min_size=3,
                                                                        max_size=3),
       st.sampled_from([flow.float32, flow.float64]), st.integers(0, 99))
def test_normalizing_has_the_bits_of_numpy(h, w, space, layout, flip, mean, std, dtype, seed):
    name, channels = space
    x = pixels(seed, (2, h, w, channels), np.uint8)
    mean, std = mean[:channels], std[:channels]
    got = flow.image.CropMirrorNormalize(flow.tensor(x), flow.tensor(np.array([flip, 0], np.int8)),
                                         color_space=name,
                                         output_layout=layout, mean=mean, std=std, output_dtype=dtype).numpy()
    x[0] = x[0, :, ::-1] if flip else x[0]
    want = (x.astype(dtype.numpy) - np.array(mean, dtype.numpy)) * (1 / np.array(std, dtype.numpy))
    assert same_bits(got, want if layout == "NHWC" else want.transpose(0, 3, 1, 2))


def test_lookup_refuses_mismatched_arguments():
    x, table, y = (np.zeros((4, 5, 3), np.uint8), np.zeros((3, 256), np.float32),
                   np.zeros((4, 5, 3), np.float32))
    _pixels.look_up(x, table, y)
    for wrong in ((x[1:], table, y), (x, table[1:], y), (x, table[:, 1:], y),
                  (x, table, y.astype(np.float64)),
                  (x.astype(np.int8), table, y), (x, table.astype(np.float64), y), (x, table, x)):
        with pytest.raises(ValueError, match="look_up"):
            _pixels.look_up(*wrong)


# copies from Pillow's memory
@given(sizes, sizes, st.sampled_from(["RGB", "BGR", "GRAY"]), st.sampled_from(["PNG", "BMP", "JPEG"]),
       st.integers(0, 99))
@example(1, 1, "RGB", "PNG", 0)
def test_pixels_match_pillow(h, w, space, kind, seed):
    Image.fromarray(pixels(seed, (h, w, 3), np.uint8)).save(f := io.BytesIO(), kind)
    want = by_pillow(f.getvalue(), "L" if space == "GRAY" else "RGB").reshape(h, w, -1)
    got = decode.decode_image(f.getvalue(), space)
    assert np.array_equal(got, want[:, :, ::-1] if space == "BGR" else want)
    assert got.flags.writeable and got.flags.owndata           # otherwise a TensorBuffer would copy it


@pytest.mark.parametrize("backwards", [False, True])
def test_an_image_in_several_memory_blocks_and_an_older_pillow_agree(backwards):
    x = pixels(0, (1200, 4000, 3), np.uint8)  # 19 MB at four bytes per pixel; Pillow's blocks have 16 MB
    image = Image.fromarray(x)
    assert np.array_equal(decode._pixels_of(image, backwards), x[:, :, ::-1] if backwards else x)
    small = x[:5, :7]

    class Older:
        mode, height, width = "RGB", 5, 7
        tobytes = Image.fromarray(small).tobytes

    assert np.array_equal(decode._pixels_of(Older, backwards),
                          decode._pixels_of(Image.fromarray(small), backwards))


@pytest.mark.skipif(not hasattr(Image.Image, "__arrow_c_array__"),
                    reason="Pillow before 11.2 does not show its memory")
def test_unpack_refuses_mismatched_arguments():
    def export(mode):
        return Image.new(mode, (4, 6)).__arrow_c_array__()[1]

    y, grey = np.ones((6, 4, 3), np.uint8), np.ones((6, 4, 1), np.uint8)
    _pixels.unpack(export("RGB"), y, False)
    _pixels.unpack(export("L"), grey, False)
    assert not y.any() and not grey.any()
    for wrong in ((export("L"), y), (export("RGB"), grey), (export("L"), grey[1:]), (export("RGB"), y[1:]),
                  (None, y),
                  (export("RGB"), y[0]), (export("RGB"), y[:, :, :2].copy()), (export("RGB"), y[:, ::-1]),
                  (export("RGB"), y.astype(np.int8))):
        with pytest.raises(ValueError):
            _pixels.unpack(*wrong, False)


# ---- small JPEG files
def by_pillow(data, mode):
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert(mode))


def jpeg(image, **options):
    image.save(f := io.BytesIO(), "JPEG", **options)
    return f.getvalue()


EXIF = Image.Exif()
EXIF[0x0112] = 6
OPTIONS = {"plain": {}, "best": {"quality": 100, "subsampling": 0}, "4:2:2": {"subsampling": 1},
           "progressive":
           {"progressive": True}, "comment": {"comment": b"\xff\xda a comment"},
           "restarts": {"restart_marker_rows": 1},
           "dpi": {"dpi": (72, 72)}, "exif": {"exif": EXIF}, "optimized": {"optimize": True}}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg_files_of_all_kinds_match_pillow(options, mode):
    quick = set()
    for shape in ((1, 1, 3), (8, 8, 3), (17, 30, 3), (520, 520, 3)):
        data = jpeg(Image.fromarray(pixels(0, shape, np.uint8)).convert(mode), **options)
        quick.add(pictures._plain_jpeg(data) is not None)
        for space, wanted in (("RGB", "RGB"), ("GRAY", "L")):
            assert np.array_equal(decode.decode_image(data, space).squeeze(),
                                  by_pillow(data, wanted).squeeze())
    left = mode == "CMYK" or "progressive" in options or "exif" in options            # decoded by Pillow
    assert quick == ({False} if left else {True, False})  # the last one is not small


@settings(max_examples=300)
@given(st.integers(0, 800), st.integers(0, 255), st.booleans())
def test_a_damaged_small_jpeg_file_is_handled_as_by_pillow(place, byte, cut):
    data = bytearray(jpeg(Image.fromarray(pixels(1, (14, 10, 3), np.uint8))))
    place %= len(data)
    data[place:] = b"" if cut else bytes([byte]) + data[place + 1:]
    try:
        want = by_pillow(bytes(data), "RGB")
    except Exception:
        with refused(DataError, "not an image that can be read"):
            decode.decode_image(bytes(data), "RGB")
    else:
        assert np.array_equal(decode.decode_image(bytes(data), "RGB"), want)


# ---- threads
@pytest.fixture
def three_threads(monkeypatch):
    made = []
    pool = futures.ThreadPoolExecutor
    monkeypatch.setattr(futures, "ThreadPoolExecutor", lambda n, name: made.append(n) or pool(n, name))
    monkeypatch.setattr(decode, "LARGE", 1)
    monkeypatch.setattr(threads, "MUCH", 1)
    before = flow.get_num_threads()
    flow.set_num_threads(3)
    yield made
    flow.set_num_threads(before)


def test_results_do_not_depend_on_threads(three_threads):
    files = flow.TensorBuffer([jpeg(Image.fromarray(pixels(i, (20 + i, 30, 3), np.uint8))) for i in range(7)])

    def found():
        pictures = flow.image.decode(files)
        fixed = flow.image.Resize(pictures, target_size=(16, 16))[0].numpy()
        kept = flow.image.Resize(pictures, target_size=9, keep_aspect_ratio=True)[0]
        mirror = flow.tensor(np.arange(7, dtype=np.int8) % 2)
        normal = [flow.image.CropMirrorNormalize(x, mirror, crop_h=9, crop_w=8, mean=[9.0], std=[7.0],
                                                 output_layout=layout)
                  for x in (flow.tensor(fixed), pictures) for layout in ("NCHW", "NHWC")]
        return [*pictures, fixed, *kept, *(x.numpy() for x in normal)]

    several = found()
    assert three_threads == [3] * 7
    flow.set_num_threads(1)
    assert (all(np.array_equal(a, b) for a, b in zip(found(), several, strict=True))
            and len(three_threads) == 7)


def test_the_first_damaged_file_is_named_with_any_thread(three_threads):
    good = jpeg(Image.fromarray(pixels(0, (40, 30, 3), np.uint8)))
    for _ in range(20):
        with refused(DataError, "instance 2"):
            flow.image.decode(flow.TensorBuffer([good, good, good[:-99], b"no picture", good[:99], good]))
    assert three_threads == [3] * 20


def test_the_first_image_too_small_to_crop_is_named_with_any_thread(three_threads):
    large, small = np.zeros((9, 9, 3), np.uint8), np.zeros((4, 9, 3), np.uint8)
    pictures = flow.TensorBuffer([large, large, small, large[:2], large])
    for _ in range(20):
        with refused(ShapeError, "instance 2"):
            flow.image.CropMirrorNormalize(pictures, crop_h=5, crop_w=5)
    assert three_threads == [3] * 20
