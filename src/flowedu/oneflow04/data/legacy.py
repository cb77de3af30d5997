"""OneFlow's first OFRecord reader, decode_ofrecord with a BlobConf per result, and unsupported readers.

    image, label = flow.data.decode_ofrecord(folder, [
        flow.data.BlobConf("encoded", (224, 224, 3), flow.float32, flow.data.ImageCodec([
            flow.data.ImageResizePreprocessor(224, 224), flow.data.ImagePreprocessor("bgr2rgb")])),
        flow.data.BlobConf("class/label", (), flow.int32, flow.data.RawCodec())], batch_size=32)
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError, DataError, UnsupportedError
from flowedu.oneflow04.data.decoders import check_raw, pictures, raw_array
from flowedu.oneflow04.data.reader import ofrecord_reader
from flowedu.oneflow04.image import resample
from flowedu.ops.front import front
from flowedu.ops.host import define_host


def _need(holds: bool, problem: str, expected: str, got, fix: str, error=CheckError) -> None:
    if not holds:
        raise error(problem, expected=expected, got=repr(got), fix=fix)


@dataclass(frozen=True)
class ImagePreprocessor:
    """A step that reorders channels or mirrors an image.

    Args:
        preprocessor: "bgr2rgb" exchanges the first and the third channel, "mirror" flips left and right.
    """

    preprocessor: str

    def __post_init__(self):
        _need(str(self.preprocessor).lower() in ("bgr2rgb", "mirror"),
              'preprocessor must be "bgr2rgb" or "mirror"',
              '"bgr2rgb" or "mirror"', self.preprocessor, 'ImagePreprocessor("bgr2rgb")', ArgumentError)

    def apply(self, picture: np.ndarray) -> np.ndarray:
        return picture[:, :, ::-1] if self.preprocessor.lower() == "bgr2rgb" else picture[:, ::-1]


@dataclass(frozen=True)
class ImageResizePreprocessor:
    """A step that resizes an image bilinearly.

    Args:
        width: the new width.
        height: the new height.
    """

    width: int
    height: int

    def __post_init__(self):
        _need(all(type(n) is int and n > 0 for n in (self.width, self.height)),
              "ImageResizePreprocessor: no such size",
              "two ints above zero", (self.width, self.height), "ImageResizePreprocessor(224, 224)")

    def apply(self, picture: np.ndarray) -> np.ndarray:
        return resample.resize(np.ascontiguousarray(picture), self.height, self.width, "bilinear")


@dataclass(frozen=True)
class NormByChannelPreprocessor:
    """A step that computes (x - mean) / std per channel.

    Args:
        mean_values: one mean per channel.
        std_values: one standard deviation per channel.
        data_format: "channels_last" or "channels_first", the axis of the channels of a sample.
    """

    mean_values: Sequence[float]
    std_values: Sequence[float] = (1.0, 1.0, 1.0)
    data_format: str = "channels_last"

    def __post_init__(self):
        for name in ("mean_values", "std_values"):
            values = getattr(self, name)
            _need(isinstance(values, (list, tuple)), f"NormByChannelPreprocessor: {name} is not a list",
                  "some numbers", values, f"{name}=(1.0, 1.0, 1.0)")
            # An op's attributes must be hashable.
            object.__setattr__(self, name, tuple(map(float, values)))
        _need(len(self.mean_values) == len(self.std_values) and 0 not in self.std_values,
              "NormByChannelPreprocessor: means and stds do not fit",
              "for every channel a mean, and a std that is not 0",
              (self.mean_values, self.std_values), "give std_values when there are not 3 channels",
              ArgumentError)
        _need(self.data_format in ("channels_last", "channels_first"),
              "NormByChannelPreprocessor: unknown data_format",
              '"channels_last" or "channels_first"', self.data_format, 'data_format="channels_last"',
              ArgumentError)

    def apply(self, sample: np.ndarray) -> np.ndarray:
        axis = 0 if self.data_format == "channels_first" else -1
        _need(sample.ndim > 0 and sample.shape[axis] == len(self.mean_values),
              "NormByChannelPreprocessor: the channels do not fit", f"{len(self.mean_values)} channels",
              sample.shape, "one mean and std per channel", DataError)
        shape = (-1,) if axis else (-1,) + (1,) * (sample.ndim - 1)
        mean, std = (np.array(v, np.float32).reshape(shape) for v in (self.mean_values, self.std_values))
        return (sample - mean) / std


@dataclass(frozen=True)
class ImageCodec:
    """A codec that decodes the bytes of a PNG or JPEG file (BGR; grey if the shape has one channel).

    Args:
        image_preprocessors: steps that are applied to the image; None is no step.
    """

    image_preprocessors: Sequence | None = None

    def __post_init__(self):
        object.__setattr__(self, "image_preprocessors", tuple(self.image_preprocessors or ()))


@dataclass(frozen=True)
class RawCodec:
    """A codec for numeric features.

    Args:
        auto_zero_padding: pad short samples with zeros and cut long ones.
    """

    auto_zero_padding: bool = False


@dataclass(frozen=True)
class BytesListCodec:
    """A codec for bytes, one value each, padded with zeros."""


@dataclass(frozen=True)
class BlobConf:
    """One result of decode_ofrecord: a blob of shape (N, *shape).

    Args:
        name: the name of the feature.
        shape: the shape of one sample.
        dtype: the dtype of the blob.
        codec: ImageCodec(), RawCodec(), or BytesListCodec().
        preprocessors: steps that are applied to the decoded sample; None is no step.
    """

    name: str
    shape: Sequence[int]
    dtype: dt.dtype
    codec: ImageCodec | RawCodec | BytesListCodec
    preprocessors: Sequence | None = None

    def __post_init__(self):
        _need(isinstance(self.shape, (list, tuple)), "BlobConf: shape is not a list", "a list of ints",
              self.shape, "(1,)")
        _need(isinstance(self.codec, (ImageCodec, RawCodec, BytesListCodec)), "BlobConf: not a codec",
              "ImageCodec(), RawCodec() or BytesListCodec()", self.codec, "flow.data.RawCodec()")
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))
        object.__setattr__(self, "preprocessors", tuple(self.preprocessors or ()))

    def decode(self, records) -> np.ndarray:
        """Return the blob as an array, from a RecordBatch.

        Args:
            records: the batch of records.
        """
        # Any: __post_init__ has replaced lists and None by tuples, also in the codec.
        steps: Any = self.preprocessors
        codec: Any = self.codec
        number = np.promote_types(self.dtype.numpy, np.float32) if steps else self.dtype.numpy
        if isinstance(codec, ImageCodec):
            samples = pictures(records, self.name, "GRAY" if self.shape[-1:] == (1,) else "BGR",
                               "decode_ofrecord")
            steps = codec.image_preprocessors + steps
        else:
            padded = isinstance(codec, BytesListCodec)
            samples = raw_array(records, self.name, self.shape, dt.as_dtype(number), padded,
                                not padded and codec.auto_zero_padding)
        out = np.empty((len(records), *self.shape), self.dtype.numpy)
        for y, x, raw in zip(out, samples, records.raw):
            for step in steps:
                x = step.apply(x)
            _need(x.shape == self.shape, f"decode_ofrecord: {self.name!r} of the record at {raw.where} has "
                  f"another shape",
                  str(self.shape), x.shape, "ImageCodec([ImageResizePreprocessor(width, height)])", DataError)
            y[...] = x
        return out


_decode = define_host("decode_ofrecord(records, *, conf) -> out",
                      host=lambda records, conf: conf.decode(records),
                      check=lambda records, conf: check_raw(records, conf.name, conf.shape, conf.dtype),
                      shape=lambda records, conf: records.shape + conf.shape, dtype=lambda conf: conf.dtype)


@front("Decode", "out")
def _blobs(records, confs):
    return tuple(_decode(records, conf=c) for c in confs)


def decode_ofrecord(ofrecord_dir: str, blobs: Sequence[BlobConf], batch_size: int = 1, data_part_num: int = 1,
                    part_name_prefix: str = "part-", part_name_suffix_length: int = -1, shuffle: bool = False,
                    buffer_size: int = 1024, name: str | None = None) -> tuple:
    """Read a batch of records and decode it (OneFlow 0.1 to 0.4).

    Args:
        ofrecord_dir: the folder of the files.
        blobs: a list of BlobConf.
        batch_size: the number of records.
        data_part_num: the number of files.
        part_name_prefix: the start of the names of the files.
        part_name_suffix_length: the number of digits in the names; -1 does not pad.
        shuffle: shuffle through a buffer of `buffer_size` records.
        buffer_size: the size of this buffer.

    Returns: a tuple with one blob for every BlobConf.
    """
    for conf in blobs:
        _need(isinstance(conf, BlobConf), "decode_ofrecord: blobs are described by BlobConf",
              "a list of BlobConf", conf, 'BlobConf("class/label", (1,), flow.int32, RawCodec())')
    records = ofrecord_reader(ofrecord_dir, batch_size, data_part_num, part_name_prefix,
                              part_name_suffix_length, shuffle, buffer_size, name=name and f"{name}-records")
    return _blobs(records, tuple(blobs), name=name)


def _missing(name: str, instead: str):
    def reader(*args, **kwargs):
        raise UnsupportedError(f"flow.data.{name}: flowedu does not have this reader",
                               expected="flow.data.ofrecord_reader and its decoders", got=name, fix=instead)
    reader.__name__ = reader.__qualname__ = name
    reader.__doc__ = f"Raise UnsupportedError: flowedu does not have this reader. Instead: {instead}."
    return reader


_AS_RECORDS = "write the data as OFRecords with flow.data.ofrecord_writer"
coco_reader = COCOReader = _missing("coco_reader",
                                    f"{_AS_RECORDS} (images as bytes, boxes and labels as lists) and read "
                                    f"them with flow.data.ofrecord_reader")
onerec_reader = _missing("onerec_reader", f"{_AS_RECORDS} and read them with flow.data.ofrecord_reader")
onerec_decoder = OneRecDecoder = _missing("onerec_decoder", "flow.data.OFRecordRawDecoder, for OFRecords")
megatron_gpt_mmap_data_loader = MegatronGPTMMapDataLoader = _missing(
    "megatron_gpt_mmap_data_loader",
    "np.memmap the tokens, and feed slices of them as an argument of the job")
decode_random = _missing("decode_random", "flow.random.CoinFlip for coins, flow.nn.dropout in a network, "
                         "or feed np.random's arrays as an argument of the job")
