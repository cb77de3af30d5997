"""flow.nn's record readers, record decoders, and image modules: each returns what its functional form
returns.
"""
import io

import numpy as np
import pytest
from PIL import Image

import flowedu as flow
from common import refused
from flowedu import data, nn
from flowedu.ops.host import forget_states


def encoded(k):
    y, x, c = np.ogrid[:20 + k, :24, :3]
    f = io.BytesIO()
    Image.fromarray((127 + 100 * np.sin((y + k) / 9) * np.cos(x / 7 + c)).astype(np.uint8)).save(f, "PNG")
    return f.getvalue()


@pytest.fixture
def folder(tmp_path):
    with data.ofrecord_writer(tmp_path) as w:
        for k in range(5):
            w.write({"class/label": np.array([k], np.int32), "encoded": encoded(k)})
    forget_states()
    return str(tmp_path)


def labels(reader, batches):
    decode = nn.OFRecordRawDecoder("class/label", shape=(), dtype=flow.int32)
    return [decode(reader()).tolist() for _ in range(batches)]


def assert_same(a, b):
    assert a.shape == b.shape
    for x, y in zip(a.items, b.items, strict=True):
        np.testing.assert_array_equal(x, y)


def test_readers_have_independent_positions(folder):
    one, other = (nn.OFRecordReader(folder, batch_size=2) for _ in range(2))
    assert labels(one, 3) == [[0, 1], [2, 3], [4, 0]] and labels(other, 1) == [[0, 1]]
    assert nn.OfrecordReader is nn.OFRecordReader and nn.OfrecordRawDecoder is nn.OFRecordRawDecoder
    shuffled = [labels(nn.OFRecordReader(folder, batch_size=5, random_shuffle=True, random_seed=7), 2)
                for _ in range(2)]
    assert (shuffled[0] == shuffled[1] != [[0, 1, 2, 3, 4]] * 2 and all(sorted(b) == [0, 1, 2, 3, 4]
                                                                        for b in shuffled[0]))
    with refused(ValueError, "batch_size"):
        nn.OFRecordReader(folder, batch_size=0)
    with refused(NotImplementedError, "main memory"):
        nn.OFRecordReader(folder, placement=flow.placement("cpu", [0]), sbp=flow.sbp.split(0))


def test_decoders_are_the_functions(folder):
    records = data.ofrecord_reader(folder, 5)
    for space in ("BGR", "RGB", "GRAY"):
        assert_same(nn.OFRecordImageDecoder("encoded", color_space=space)(records),
                    data.OFRecordImageDecoder(records, "encoded", space))
    assert_same(nn.OFRecordBytesDecoder("encoded")(records), data.OFRecordBytesDecoder(records, "encoded"))
    wide = nn.OFRecordRawDecoder("class/label", (2,), flow.int64, dim1_varying_length=True)(records)
    assert wide.tolist() == [[k, 0] for k in range(5)] and wide.dtype is flow.int64
    assert_same(nn.OFRecordImageDecoderRandomCrop("encoded", random_seed=3)(records),
                data.OFRecordImageDecoderRandomCrop(records, "encoded", seed=3))
    crop = nn.OFRecordImageDecoderRandomCrop("encoded", random_area=(0.3, 0.5), random_seed=1)
    first, second = crop(records), crop(records)
    whole = data.OFRecordImageDecoder(records, "encoded").items
    assert all(0.2 < a.size / b.size < 0.6 for a, b in zip(first.items, whole))
    assert any(a.shape != b.shape or (a != b).any() for a, b in zip(first.items, second.items))


def test_coin_flip_modules():
    coin = nn.CoinFlip(batch_size=1000, random_seed=2, probability=0.2)
    first, second = coin(), coin()
    assert (first.dtype is flow.int8 and 120 < first.sum().item() < 280
            and (first.numpy() != second.numpy()).any())
    assert (nn.CoinFlip(1000, 2, 0.2)().numpy() == first.numpy()).all()
    with refused(ValueError, "probability"):
        nn.CoinFlip(probability=2.0)
    lying = nn.CoinFlip(4, placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast)()
    assert lying.is_global and lying.shape == (4,)


def test_the_pipeline_of_a_training_script(folder):
    """The pipeline of OneFlow's ImageNet scripts."""
    mean, std = [123.68, 116.779, 103.939], [58.393, 57.12, 57.375]
    pictures = nn.OFRecordImageDecoder("encoded",
                                       color_space="RGB")(nn.OFRecordReader(folder, batch_size=4)())
    resized, scale, size = nn.image.Resize(target_size=[16, 12])(pictures)
    mirror = nn.CoinFlip(batch_size=4, random_seed=0)()
    got = nn.CropMirrorNormalize(color_space="RGB", output_layout="NCHW", mean=mean, std=std,
                                 output_dtype=flow.float32)(
                                     resized, mirror)
    want = flow.image.CropMirrorNormalize(flow.image.Resize(pictures, (16, 12))[0], mirror, "RGB", mean=mean,
                                          std=std)
    assert got.shape == (4, 3, 12, 16)
    np.testing.assert_array_equal(got.numpy(), want.numpy())
    kept, _, _ = nn.image.Resize(target_size=10, keep_aspect_ratio=True)(pictures)
    assert [min(a.shape[:2]) for a in kept.items] == [10] * 4
    cut = nn.CropMirrorNormalize(color_space="RGB", crop_h=8, crop_w=6)(pictures)
    assert cut.shape == (4, 3, 8, 6)


def test_image_modules_match_the_functions(folder):
    content = data.OFRecordBytesDecoder(data.ofrecord_reader(folder, 3), "encoded")
    pictures = nn.image.decode(flow.float32, "RGB")(content)
    assert_same(pictures, flow.image.decode(content, flow.float32, "RGB"))
    assert_same(nn.image.normalize((2.0, 3.0, 4.0), (1.0, 1.0, 0.0))(pictures),
                flow.image.normalize(pictures, (2.0, 3.0, 4.0), (1.0, 1.0, 0.0)))
    assert_same(nn.image.flip()(pictures, 16), flow.image.flip(pictures, 16))
    aligned = nn.image.batch_align((32, 32, 3), flow.float32, 16)(pictures)
    np.testing.assert_array_equal(aligned.numpy(), flow.image.batch_align(pictures, (32, 32, 3), flow.float32,
                                                                          16).numpy())


def test_sources_inside_a_graph_are_refused(folder):
    class Asking(nn.Graph):
        def __init__(self):
            super().__init__()
            self.coin = nn.CoinFlip(4)

        def build(self, x):
            return x + self.coin()

    with refused(flow.errors.LazyTensorError, "when the graph is built", at=False):
        Asking()(flow.ones(4))
