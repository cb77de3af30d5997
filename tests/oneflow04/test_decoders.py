"""Record decoders and the older decode_ofrecord, inside and outside of jobs."""
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import flowedu as flow
import flowedu.typing as tp
from common import fresh_session, refused  # noqa: F401
from flowedu import data
from flowedu.data.__main__ import main
from flowedu.errors import ArgumentError, CheckError, DataError, DTypeError, ShapeError, UnsupportedError
from flowedu.ops.host import forget_states

TYPES = ["float32", "float64", "int32", "int64"]
in_tmp_path = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None,
                       max_examples=40)


@pytest.fixture(autouse=True)
def fresh_readers():
    forget_states()


def write_records(folder, *records):
    with data.ofrecord_writer(folder) as w:
        for r in records:
            w.write(r)
    forget_states()
    return str(folder)


def batch(folder, *records):
    return data.ofrecord_reader(write_records(folder, *records), len(records))


def raw(records, dtype=flow.float32, shape=(2,), **options):
    return data.OFRecordRawDecoder(records, "x", shape, dtype, **options).numpy()


def make_smooth_image(height, width, seed=0):
    """Return a smooth RGB image that JPEG compression changes little."""
    y, x, c = np.ogrid[:height, :width, :3]
    return (127 + 100 * np.sin((y + seed) / 9) * np.cos(x / 7 + c)).astype(np.uint8)


def encode(array, kind="PNG"):
    f = io.BytesIO()
    Image.fromarray(array).save(f, kind)
    return f.getvalue()


def by_pillow(content, mode="RGB"):
    pixels = np.asarray(Image.open(io.BytesIO(content)).convert(mode))
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


# ---- numeric features
# ----------------------------------------------------------------------------------------------

@in_tmp_path
@given(st.sampled_from(TYPES), st.sampled_from([*TYPES, "int8"]),
       st.sampled_from([(), (1,), (6,), (2, 3), (3, 1, 2)]), st.integers(1, 4))
def test_every_kind_of_list_decodes_to_every_dtype(tmp_path, stored, asked, shape, count):
    arrays = [(np.random.default_rng(i).uniform(-100, 100, shape)).astype(stored) for i in range(count)]
    got = raw(batch(tmp_path, *({"x": a} for a in arrays)), getattr(flow, asked), shape)
    expected = np.stack(arrays).astype(asked)
    assert got.dtype == asked and got.shape == (count, *shape) and np.array_equal(got, expected)


def test_bytes_decode_to_integers_from_0_to_255(tmp_path):
    records = batch(tmp_path, {"x": b"\x01\xff"}, {"x": b"\x80\x00"})
    for dtype in (flow.uint8, flow.float32, flow.int32, flow.int64):
        assert raw(records, dtype).tolist() == [[1, 255], [128, 0]]
    for dtype in (flow.int8, flow.char):
        assert raw(records, dtype).tolist() == [[1, -1], [-128, 0]]


def test_samples_with_a_different_count(tmp_path):
    records = batch(tmp_path, {"x": [1.0]}, {"x": [1.0, 2.0]}, {"x": np.zeros(0, np.float32)})
    with refused(DataError, "'x'", "byte 0 of", "2 elements", "1 elements", "truncate"):
        raw(records)
    assert raw(records, dim1_varying_length=True).tolist() == [[1, 0], [1, 2], [0, 0]]
    for options in (dict(truncate=True), dict(auto_zero_padding=True)):
        assert raw(records, shape=(1,), **options).tolist() == [[1], [1], [0]]
    with refused(DataError, "1 elements", "2 elements"):
        raw(records, shape=(1,), dim1_varying_length=True)


def test_integers_that_do_not_fit_are_not_cut(tmp_path):
    records = batch(tmp_path, {"x": [1, 2]}, {"x": [1 << 40, -1]})
    with refused(DataError, "does not fit int32", "1099511627776", "flow.int64") as e:
        raw(records, flow.int32)
    assert f"byte {records.raw[1].offset} " in str(e.info.value)
    with refused(DataError, "does not fit uint8", "0 to 255"):
        raw(batch(tmp_path, {"x": [1, -2]}), flow.uint8)


def test_invalid_arguments_of_decoders_are_refused(tmp_path):
    records = batch(tmp_path, {"x": [1.0, 2.0], "many": [b"a", b"b"], "b": b"abc"})
    with refused(DataError, "no feature 'y'", "'many' (bytes_list)", "'x' (float_list)"):
        data.OFRecordRawDecoder(records, "y", (2,), flow.float32)
    with refused(DTypeError, "OFRecordRawDecoder", "ofrecord_reader"):
        raw(flow.tensor([1.0]))
    with refused(DTypeError, "OFRecordBytesDecoder"):
        raw(records, flow.tensor_buffer)
    with refused(ShapeError, "batch axis"):
        raw(records, shape=(-1,))
    with refused(ArgumentError, "blob_name"):
        data.OFRecordRawDecoder(records, 3, (2,), flow.float32)
    with refused(DataError, "'many'", "2 entries"):
        data.OFRecordBytesDecoder(records, "many")
    with refused(DataError, "'x'", "float_list", "OFRecordRawDecoder"):
        data.OFRecordBytesDecoder(records, "x")
    with refused(DataError, "OFRecordImageDecoder", "'b'", "part-0"):
        data.OFRecordImageDecoder(records, "b")
    with refused(ArgumentError, "color_space", "GRAY"):
        data.OFRecordImageDecoder(records, "b", "CMYK")
    with refused(ArgumentError, "random_area"):
        data.OFRecordImageDecoderRandomCrop(records, "b", random_area=[0.5, 0.1])


# ---- bytes and images
# ----------------------------------------------------------------------------------------------

@in_tmp_path
@given(st.lists(st.binary(max_size=50), min_size=1, max_size=5))
def test_bytes_round_trip(tmp_path, contents):
    got = data.OFRecordBytesDecoder(batch(tmp_path, *({"x": c} for c in contents)), "x")
    assert isinstance(got, flow.TensorBuffer) and got.shape == (len(contents),)
    assert [a.tobytes() for a in got] == contents and all(a.dtype == np.uint8 and a.ndim == 1 for a in got)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP"])
def test_decoded_images_match_pillow(tmp_path, kind):
    contents = [encode(make_smooth_image(20, 31), kind), encode(make_smooth_image(40, 9), kind),
                encode(make_smooth_image(8, 8)[:, :, 0], kind)]
    records = batch(tmp_path, *({"encoded": c} for c in contents))
    rgb = data.OFRecordImageDecoder(records, "encoded", "RGB")
    bgr = data.OFRecordImageDecoder(records, "encoded", "BGR")
    gray = data.OFRecordImageDecoder(records, "encoded", "GRAY")
    default = data.OFRecordImageDecoder(records, "encoded")
    for i, c in enumerate(contents):
        assert np.array_equal(rgb[i], by_pillow(c)) and np.array_equal(bgr[i], by_pillow(c)[:, :, ::-1])
        assert np.array_equal(default[i], bgr[i]) and np.array_equal(gray[i], by_pillow(c, "L"))
        assert rgb[i].dtype == np.uint8


@given(st.integers(1, 40), st.integers(1, 40), st.tuples(st.floats(0.05, 1), st.floats(0.05, 1)).map(sorted),
       st.tuples(st.floats(0.3, 3), st.floats(0.3, 3)).map(sorted), st.integers(0, 1000))
@in_tmp_path
def test_a_random_crop_is_inside_the_image_and_the_limits(tmp_path, height, width, area, ratio, seed):
    y, x = np.mgrid[:height, :width]
    where = np.stack([y, x, y], axis=2).astype(np.uint8)        # every pixel stores its own position
    records = batch(tmp_path, {"x": encode(where)})
    crop = data.OFRecordImageDecoderRandomCrop(records, "x", "RGB", 10, seed, area, ratio)[0]
    h, w, _ = crop.shape
    top, left = crop[0, 0, :2]
    assert np.array_equal(crop, where[top:top + h, left:left + w])
    # Sides are rounded to whole pixels, so allow one pixel in each direction.
    assert (h - 1) * (w - 1) <= area[1] * height * width
    assert w - 1 <= ratio[1] * (h + 1) and h - 1 <= (w + 1) / ratio[0]
    if ratio[0] <= width / height <= ratio[1] and min(height, width) > 8 and area[1] - area[0] > 0.3:
        assert (h + 1) * (w + 1) >= area[0] * height * width


def test_random_crops_follow_the_seed_and_change(tmp_path):
    records = batch(tmp_path, *({"x": encode(make_smooth_image(30, 30, i))} for i in range(4)))

    def crop(**options):
        return [a.shape for a in data.OFRecordImageDecoderRandomCrop(records, "x", **options)]

    first = [crop(seed=1), crop(seed=1)]
    assert first[0] != first[1]                                 # the next samples of the same sequence differ
    forget_states()
    assert [crop(seed=1), crop(seed=1)] == first
    flow.random.seed(2)
    by_global_seed = crop(), crop()
    flow.random.seed(2)
    assert (crop(), crop()) == by_global_seed and by_global_seed[0] != by_global_seed[1]


@pytest.mark.parametrize("module, snake, camel", [
    (data, "ofrecord_raw_decoder", "OFRecordRawDecoder"), (data, "ofrecord_bytes_decoder",
                                                           "OFRecordBytesDecoder"),
    (data, "ofrecord_image_decoder", "OFRecordImageDecoder"),
    (data, "ofrecord_image_decoder_random_crop", "OFRecordImageDecoderRandomCrop"),
    (flow.random, "coin_flip", "CoinFlip")])
def test_snake_case_names_are_the_same_functions(module, snake, camel):
    one, other = (getattr(module, name) for name in (snake, camel))
    assert getattr(one, "function", one) is getattr(other, "function", other)  # compare the wrapped functions


# ---- in jobs
# -------------------------------------------------------------------------------------------------------

def digits(folder, count=6):
    """Write images of different sizes with their labels."""
    contents = [encode(make_smooth_image(20 + i, 30 - i, i)) for i in range(count)]
    write_records(folder, *({"encoded": c, "class/label": np.int32(i)} for i, c in enumerate(contents)))
    return contents


def test_a_job_reads_decodes_resizes_and_normalizes(tmp_path):
    contents = digits(tmp_path)

    @flow.global_function()
    def pipeline() -> tuple[tp.Numpy, tp.Numpy, tp.Numpy]:
        records = data.ofrecord_reader(str(tmp_path), batch_size=3)
        images = data.OFRecordImageDecoder(records, "encoded", color_space="RGB")
        labels = data.OFRecordRawDecoder(records, "class/label", shape=(), dtype=flow.int32)
        assert images.shape == (3,) and images.dtype is flow.tensor_buffer and labels.shape == (3,)
        resized, scale, _ = flow.image.Resize(images, target_size=(16, 12))
        mirror = flow.random.CoinFlip(3)
        return (flow.image.CropMirrorNormalize(resized, mirror, color_space="RGB", mean=[100.0], std=[50.0]),
                labels, mirror)

    for at in (0, 3, 0):
        x, labels, mirror = pipeline()
        assert labels.tolist() == [at, at + 1, at + 2]
        for i in range(3):
            buffer = flow.TensorBuffer([by_pillow(contents[at + i])])
            expected = (flow.image.Resize(buffer,
                                          target_size=(16, 12))[0].numpy()[0].astype(np.float32) - 100) / 50
            expected = expected[:, ::-1] if mirror[i] else expected
            np.testing.assert_allclose(x[i], expected.transpose(2, 0, 1), rtol=1e-6)


def test_results_of_a_job_share_no_memory(tmp_path):
    digits(tmp_path)

    @flow.global_function()
    def pipeline() -> tuple[tp.Numpy, tp.Numpy, tp.Numpy, tp.Numpy, tp.Numpy]:
        records = data.ofrecord_reader(str(tmp_path), batch_size=6)
        labels = data.OFRecordRawDecoder(records, "class/label", shape=(), dtype=flow.int32)
        once = data.OFRecordRawDecoder(records, "class/label", shape=(), dtype=flow.int32)
        resized = flow.image.Resize(data.OFRecordImageDecoder(records, "encoded"), target_size=(16, 12))[0]
        return labels, labels, once, resized, flow.image.CropMirrorNormalize(resized)

    want = [x.copy() for x in pipeline()]
    held = [pipeline() for _ in range(3)]                   # each batch contains all six
    for results in held:
        for x, w in zip(results, want, strict=True):
            assert np.array_equal(x, w) and x.flags.writeable and x.flags.c_contiguous
            x[...] = 77                                     # writing to one result changes no other result
    assert all(np.array_equal(x, w) for x, w in zip(pipeline(), want, strict=True))


def test_the_image_classification_reader(tmp_path):
    contents = digits(tmp_path)

    @flow.global_function()
    def read() -> tuple[tp.Numpy, tp.Numpy]:
        images, labels = data.ofrecord_image_classification_reader(str(tmp_path), "encoded", "class/label", 2,
                                                                   color_space="RGB", name="decode")
        assert images.op_name == "decode"
        return flow.image.Resize(images, target_size=(20, 20))[0], labels

    x, labels = read()
    buffers = flow.TensorBuffer([by_pillow(c) for c in contents[:2]])
    assert (np.array_equal(x, flow.image.Resize(buffers, target_size=(20, 20))[0].numpy())
            and labels.tolist() == [0, 1])


# ---- decode_ofrecord
# -----------------------------------------------------------------------------------------------

def confs():
    steps = [data.ImageResizePreprocessor(10, 8), data.ImagePreprocessor("bgr2rgb"),
             data.ImagePreprocessor("mirror")]
    return [data.BlobConf("encoded", (8, 10, 3), flow.float32, data.ImageCodec(steps),
                          [data.NormByChannelPreprocessor((10.0, 20.0, 30.0), (2.0, 4.0, 5.0))]),
            data.BlobConf("class/label", (1,), flow.int32, data.RawCodec()),
            data.BlobConf("class/label", (3,), flow.float32, data.RawCodec(auto_zero_padding=True)),
            data.BlobConf("encoded", (4,), flow.uint8, data.RawCodec(auto_zero_padding=True))]


@pytest.mark.parametrize("where", ["eager", "job"])
def test_decode_ofrecord(tmp_path, where):
    contents = digits(tmp_path)

    def decode():
        return data.decode_ofrecord(str(tmp_path), confs(), batch_size=2, name="decode")

    if where == "eager":
        got = [b.numpy() for b in decode()]
    else:
        @flow.global_function()
        def job() -> tuple[tp.Numpy, tp.Numpy, tp.Numpy, tp.Numpy]:
            return decode()

        got = job()
    images, labels, padded, start = got
    buffers = flow.TensorBuffer([by_pillow(c) for c in contents[:2]])
    resized = flow.image.Resize(buffers, target_size=(10, 8), interpolation_type="bilinear")[0].numpy()
    expected = (resized[:, :, ::-1] - np.float32([10, 20, 30])) / np.float32([2, 4, 5])
    np.testing.assert_allclose(images, expected, rtol=1e-6)
    assert labels.tolist() == [[0], [1]] and labels.dtype == np.int32
    assert padded.tolist() == [[0, 0, 0], [1, 0, 0]] and start[0].tobytes() == contents[0][:4]


def test_invalid_arguments_of_decode_ofrecord_are_refused(tmp_path):
    digits(tmp_path)
    with refused(ValueError, "bgr2rgb"):
        data.ImagePreprocessor("rotate")
    with refused(CheckError, "BlobConf"):
        data.BlobConf("x", 3, flow.float32, data.RawCodec())
    with refused(CheckError, "codec"):
        data.BlobConf("x", (3,), flow.float32, "raw")
    with refused(ArgumentError, "std"):
        data.NormByChannelPreprocessor((1.0,))
    with refused(DataError, "another shape", "ImageResizePreprocessor"):
        data.decode_ofrecord(str(tmp_path), [data.BlobConf("encoded", (8, 8, 3), flow.float32,
                                                           data.ImageCodec())])
    with refused(CheckError, "BlobConf"):
        data.decode_ofrecord(str(tmp_path), ["encoded"])


@pytest.mark.parametrize("name", ["coco_reader", "COCOReader", "onerec_reader",
                                  "megatron_gpt_mmap_data_loader", "decode_random"])
def test_unsupported_readers_name_the_replacement(name):
    with refused(UnsupportedError, "flow"):
        getattr(data, name)("file", batch_size=3)


# ---- the command line
# --------------------------------------------------------------------------------------------------

def test_mnist_as_ofrecords(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOWEDU_CACHE", str(tmp_path / "cache"))
    assert main(["ofrecord", "out", "--parts", "2"]) == 0
    assert "6,000 records in 2 parts" in capsys.readouterr().out
    records = data.ofrecord_reader("out/test", 1000, 2)
    images = data.OFRecordRawDecoder(records, "images", (1, 28, 28), flow.float32).numpy() / 255
    labels = data.OFRecordRawDecoder(records, "labels", (), flow.int32).numpy()
    _, (x, y) = data.load_mnist(test_batch_size=1000)
    order = [*range(0, 1000, 2), *range(1, 1000, 2)]                    # the two parts in order
    np.testing.assert_allclose(images, x[0][order], rtol=1e-6)
    assert np.array_equal(labels, y[0][order])
    assert main(["ofrecord", "out", "--parts", "0"]) == 1 and "data_part_num" in capsys.readouterr().err


# ---- decode, crop, and resize in one step
# ---------------------------------------------------------------------------

def test_random_crop_and_resize(tmp_path):
    contents = [encode(make_smooth_image(40, 30, k)) for k in range(3)]
    records = batch(tmp_path, *[{"x": c} for c in contents])
    buffers = data.OFRecordBytesDecoder(records, "x")
    whole = dict(random_area=(1.0, 1.0), random_aspect_ratio=(0.75, 0.75))
    y = data.ImageDecoderRandomCropResize(buffers, 15, 20, **whole)
    assert y.shape == (3, 20, 15, 3) and y.dtype is flow.uint8
    for got, content in zip(y.numpy(), contents):
        want = flow.image.Resize(flow.TensorBuffer([by_pillow(content)]), target_size=(15, 20),
                                 interpolation_type="bilinear")[0].numpy()[0]
        np.testing.assert_array_equal(got, want)
    some = []
    for seed in 1, 1, 2:
        forget_states()
        some.append(data.image_decoder_random_crop_resize(buffers, 8, 8, seed=seed).numpy())
    assert np.array_equal(some[0], some[1]) and not np.array_equal(some[0], some[2])
    with refused(ArgumentError, "random_area"):
        data.ImageDecoderRandomCropResize(buffers, 8, 8, random_area=(0, 1))
    with pytest.warns(UserWarning, match="num_workers"):
        data.ImageDecoderRandomCropResize(buffers, 8, 8, num_workers=3)
