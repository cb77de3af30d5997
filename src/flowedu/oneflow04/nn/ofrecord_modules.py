"""Readers and decoders of OFRecord files as modules: flow.nn.OFRecordReader and others of OneFlow 0.7.

They do the same as the functions of flow.data, but each module has its own position in the files and its own
random generator. They run eagerly, and their results are passed to a graph.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.context import gen_seed
from flowedu.core.layers.module import Module
from flowedu.core.ops.call import current_interpreter
from flowedu.core.values import dtype as dt
from flowedu.errors import LazyTensorError, UnsupportedError
from flowedu.oneflow04.data import decoders
from flowedu.oneflow04.data.ofrecord import part_paths
from flowedu.oneflow04.data.reader import RecordBatch, RecordReader, _check
from flowedu.oneflow04.image import crop_mirror
from flowedu.oneflow04.image.decode import check_color_space, check_crop
from flowedu.oneflow04.random import _check as _check_coins
from flowedu.tensor.construction.creation import tensor
from flowedu.tensor.construction.destination import finished


class _Source(Module):
    """Base class of modules that return something different in each call."""

    def __init__(self, seed: int | None):
        super().__init__()
        self.seed = gen_seed() if seed is None or seed < 0 else seed

    def forward(self, *inputs):
        if current_interpreter() is not None:
            raise LazyTensorError(f"{type(self).__name__}: in a graph it would be called once, when the "
                                  f"graph is built",
                                  expected="a call outside of build()", got="a call inside",
                                  fix="call it in the training loop, and pass what it gives to the graph")
        return self.draw(*inputs)


class OFRecordReader(_Source):
    """A module that returns the next records of a data set as a RecordBatch, in a loop.

    Records stay in main memory of the rank that reads them; another device or a placement raises
    UnsupportedError.

    Args:
        ofrecord_dir: the folder of the files.
        batch_size: the number of records per call.
        data_part_num: the number of files.
        part_name_prefix: the start of the names of the files.
        part_name_suffix_length: the number of digits in the names; -1 does not pad.
        random_shuffle: shuffle through a buffer of `shuffle_buffer_size` records.
        shuffle_buffer_size: the size of this buffer.
        shuffle_after_epoch: shuffle the files after each epoch.
        random_seed: the seed of the shuffling; -1 derives it from flow.manual_seed.
        device: must be "cpu" or None.
        placement: must be None.
        sbp: must be None.
        name: a name of the module.
    """

    def __init__(self, ofrecord_dir: str, batch_size: int = 1, data_part_num: int = 1,
                 part_name_prefix: str = "part-",
                 part_name_suffix_length: int = -1, random_shuffle: bool = False,
                 shuffle_buffer_size: int = 1024,
                 shuffle_after_epoch: bool = False, random_seed: int = -1, device=None, placement=None,
                 sbp=None, name: str | None = None):
        super().__init__(random_seed)
        if str(device or "cpu").partition(":")[0] != "cpu" or placement is not None or sbp is not None:
            raise UnsupportedError("OFRecordReader: records are in main memory, of the rank that reads them",
                                   expected='device="cpu", and no placement',
                                   got=f"{device}, {placement}, {sbp}",
                                   fix="decoder(reader()).to(device), or .to_global(placement, sbp)")
        self.name = name
        paths = part_paths(ofrecord_dir, data_part_num, part_name_prefix, part_name_suffix_length)
        _check(paths, batch_size, shuffle_buffer_size)
        self.batch_size = batch_size
        self.reader = RecordReader(paths, random_shuffle, shuffle_buffer_size, shuffle_after_epoch, self.seed)

    def draw(self) -> RecordBatch:
        return self.reader.next(self.batch_size)


class OFRecordRawDecoder(Module):
    """A module that decodes a numeric feature of every record. See flow.data.OFRecordRawDecoder.

    Args:
        blob_name: the name of the feature.
        shape: the shape of one sample. The result has the shape (records, *shape).
        dtype: the dtype of the result.
        dim1_varying_length: accept shorter samples, which are padded with zeros.
        truncate: also accept longer samples, which are cut.
        auto_zero_padding: the old name of truncate.
        name: a name of the module.
    """

    def __init__(self, blob_name: str, shape: Sequence[int], dtype: dt.dtype,
                 dim1_varying_length: bool = False,
                 truncate: bool = False, auto_zero_padding: bool = False, name: str | None = None):
        super().__init__()
        self.name = name
        self.blob_name, self.shape, self.dtype = blob_name, shape, dtype
        self.options = {"dim1_varying_length": dim1_varying_length, "truncate": truncate or auto_zero_padding}

    def forward(self, input: RecordBatch) -> Tensor:
        return decoders.OFRecordRawDecoder(input, self.blob_name, self.shape, self.dtype, **self.options)


class OFRecordBytesDecoder(Module):
    """A module that returns a bytes feature of every record, as a TensorBuffer.

    Args:
        blob_name: the name of the feature.
        name: a name of the module.
    """

    def __init__(self, blob_name: str, name: str | None = None):
        super().__init__()
        self.blob_name, self.name = blob_name, name

    def forward(self, input: RecordBatch) -> TensorBuffer:
        return decoders.OFRecordBytesDecoder(input, self.blob_name)


class OFRecordImageDecoder(Module):
    """A module that decodes a feature of PNG, JPEG, or BMP bytes to uint8 (height, width, channels).

    The result is a TensorBuffer of shape (N,).

    Args:
        blob_name: the name of the feature.
        color_space: "BGR", "RGB", or "GRAY".
    """

    def __init__(self, blob_name: str, color_space: str = "BGR"):
        super().__init__()
        check_color_space("OFRecordImageDecoder", color_space)
        self.blob_name, self.color_space = blob_name, color_space

    def forward(self, input: RecordBatch) -> TensorBuffer:
        return decoders.OFRecordImageDecoder(input, self.blob_name, self.color_space)


class OFRecordImageDecoderRandomCrop(_Source):
    """A module that decodes images as OFRecordImageDecoder and returns a random crop of each.

    Args:
        blob_name: the name of the feature.
        color_space: "BGR", "RGB", or "GRAY".
        num_attempts: the number of attempts to draw a crop that fits.
        random_seed: the seed of the crops; None derives it from flow.manual_seed.
        random_area: the range of the area, as a fraction of the image.
        random_aspect_ratio: the range of the ratio of width to height.
    """

    def __init__(self, blob_name: str, color_space: str = "BGR", num_attempts: int = 10,
                 random_seed: int | None = None,
                 random_area: Sequence[float] = (0.08, 1.0),
                 random_aspect_ratio: Sequence[float] = (0.75, 1.333333)):
        super().__init__(random_seed)
        check_color_space("OFRecordImageDecoderRandomCrop", color_space)
        window = check_crop("OFRecordImageDecoderRandomCrop", random_area, random_aspect_ratio, num_attempts)
        self.how = blob_name, color_space, "OFRecordImageDecoderRandomCrop", num_attempts, *window
        self.rng = np.random.default_rng(self.seed)

    def draw(self, input: RecordBatch) -> TensorBuffer:
        decoders.check_records("OFRecordImageDecoderRandomCrop", input, self.how[0])
        return decoders._crops(input, self.rng, *self.how)


class CoinFlip(_Source):
    """A module that returns random ones and zeros, such as the `mirror` argument of CropMirrorNormalize.

    Args:
        batch_size: the number of values; the result is int8 of shape (batch_size,).
        random_seed: the seed; None derives it from flow.manual_seed.
        probability: the probability of a 1.
        device: the device of the result.
        placement: the placement of a global result.
        sbp: the layout of a global result.
    """

    def __init__(self, batch_size: int = 1, random_seed: int | None = None, probability: float = 0.5,
                 device=None, placement=None, sbp=None):
        super().__init__(random_seed)
        _check_coins(batch_size, probability)
        self.batch_size, self.probability, self.rng = (batch_size, probability,
                                                       np.random.default_rng(self.seed))
        self.where = device, False, placement, sbp

    def draw(self) -> Tensor:
        return finished(tensor((self.rng.random(self.batch_size) < self.probability).astype(np.int8)),
                        *self.where)


class CropMirrorNormalize(Module):
    """A module that crops images, mirrors those whose `mirror` is not 0, and normalizes with mean and std.

    Args:
        color_space: "BGR", "RGB", or "GRAY", which determines the number of channels.
        output_layout: "NCHW" or "NHWC".
        crop_h: the height of the crop in pixels; 0 keeps the height.
        crop_w: the width of the crop in pixels; 0 keeps the width.
        crop_pos_y: the vertical position of the crop, from 0 (top) to 1.
        crop_pos_x: the horizontal position of the crop, from 0 (left) to 1.
        mean: one mean, or one per channel.
        std: one standard deviation, or one per channel.
        output_dtype: float32 or float64.
    """

    def __init__(self, color_space: str = "BGR", output_layout: str = "NCHW", crop_h: int = 0,
                 crop_w: int = 0,
                 crop_pos_y: float = 0.5, crop_pos_x: float = 0.5, mean: Sequence[float] = (0.0,),
                 std: Sequence[float] = (1.0,), output_dtype: dt.dtype = dt.float32):
        super().__init__()
        self.options = {"color_space": color_space, "output_layout": output_layout, "crop_h": crop_h,
                        "crop_w": crop_w,
                        "crop_pos_y": crop_pos_y, "crop_pos_x": crop_pos_x, "mean": mean, "std": std,
                        "output_dtype": output_dtype}

    def forward(self, input, mirror: Tensor | None = None) -> Tensor:
        return crop_mirror.CropMirrorNormalize(input, mirror, **self.options)


OfrecordReader, OfrecordRawDecoder, OfrecordBytesDecoder = (OFRecordReader, OFRecordRawDecoder,
                                                            OFRecordBytesDecoder)
