"""Readers and decoders of OFRecord files as modules: flow.nn.OFRecordReader and others.

OneFlow 0.7 and later have them. They do the same as the functions of flow.data; a module has its own position
in the files, and its own random generator. They run eagerly, and their results are passed to a graph.
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
from flowedu.tensor.creation import tensor
from flowedu.tensor.destination import finished


class _Source(Module):
    """What gives something else at every call."""

    def __init__(self, seed: int | None):
        super().__init__()
        self.seed = gen_seed() if seed is None or seed < 0 else seed

    def forward(self, *inputs):
        if current_interpreter() is not None:
            raise LazyTensorError(f"{type(self).__name__}: in a graph it would be asked once, when the graph is built",
                                  expected="a call outside of build()", got="a call inside",
                                  fix="call it in the training loop, and pass what it gives to the graph")
        return self.draw(*inputs)


class OFRecordReader(_Source):
    """Each call gives the next batch_size records, a RecordBatch for the decoders; after the last it begins again.

    data_part_num, part_name_prefix, part_name_suffix_length: the names of the files, as flow.data.ofrecord_reader has them.
    random_shuffle: through a buffer of shuffle_buffer_size records. shuffle_after_epoch: the parts in another order.
    Records stay in main memory, and with the rank that reads them: another device, or a placement, is refused.
    """

    def __init__(self, ofrecord_dir: str, batch_size: int = 1, data_part_num: int = 1, part_name_prefix: str = "part-",
                 part_name_suffix_length: int = -1, random_shuffle: bool = False, shuffle_buffer_size: int = 1024,
                 shuffle_after_epoch: bool = False, random_seed: int = -1, device=None, placement=None, sbp=None,
                 name: str | None = None):
        super().__init__(random_seed)
        if str(device or "cpu").partition(":")[0] != "cpu" or placement is not None or sbp is not None:
            raise UnsupportedError("OFRecordReader: records are in main memory, of the rank that reads them",
                                   expected='device="cpu", and no placement', got=f"{device}, {placement}, {sbp}",
                                   fix="decoder(reader()).to(device), or .to_global(placement, sbp)")
        self.name = name
        paths = part_paths(ofrecord_dir, data_part_num, part_name_prefix, part_name_suffix_length)
        _check(paths, batch_size, shuffle_buffer_size)
        self.batch_size = batch_size
        self.reader = RecordReader(paths, random_shuffle, shuffle_buffer_size, shuffle_after_epoch, self.seed)

    def draw(self) -> RecordBatch:
        return self.reader.next(self.batch_size)


class OFRecordRawDecoder(Module):
    """A feature of numbers of every record: (records, *shape). See flow.data.OFRecordRawDecoder."""

    def __init__(self, blob_name: str, shape: Sequence[int], dtype: dt.dtype, dim1_varying_length: bool = False,
                 truncate: bool = False, auto_zero_padding: bool = False, name: str | None = None):
        super().__init__()
        self.name = name
        self.blob_name, self.shape, self.dtype = blob_name, shape, dtype
        self.options = {"dim1_varying_length": dim1_varying_length, "truncate": truncate or auto_zero_padding}

    def forward(self, input: RecordBatch) -> Tensor:
        return decoders.OFRecordRawDecoder(input, self.blob_name, self.shape, self.dtype, **self.options)


class OFRecordBytesDecoder(Module):
    """A feature of bytes of every record, as a TensorBuffer."""

    def __init__(self, blob_name: str, name: str | None = None):
        super().__init__()
        self.blob_name, self.name = blob_name, name

    def forward(self, input: RecordBatch) -> TensorBuffer:
        return decoders.OFRecordBytesDecoder(input, self.blob_name)


class OFRecordImageDecoder(Module):
    """The pictures of a feature of PNG, JPEG or BMP bytes, as a TensorBuffer of uint8 (height, width, channels)."""

    def __init__(self, blob_name: str, color_space: str = "BGR"):
        super().__init__()
        check_color_space("OFRecordImageDecoder", color_space)
        self.blob_name, self.color_space = blob_name, color_space

    def forward(self, input: RecordBatch) -> TensorBuffer:
        return decoders.OFRecordImageDecoder(input, self.blob_name, self.color_space)


class OFRecordImageDecoderRandomCrop(_Source):
    """As OFRecordImageDecoder, of each picture a random piece: random_area of its area, with a width-to-height ratio in
    random_aspect_ratio."""

    def __init__(self, blob_name: str, color_space: str = "BGR", num_attempts: int = 10, random_seed: int | None = None,
                 random_area: Sequence[float] = (0.08, 1.0), random_aspect_ratio: Sequence[float] = (0.75, 1.333333)):
        super().__init__(random_seed)
        check_color_space("OFRecordImageDecoderRandomCrop", color_space)
        window = check_crop("OFRecordImageDecoderRandomCrop", random_area, random_aspect_ratio, num_attempts)
        self.how = blob_name, color_space, "OFRecordImageDecoderRandomCrop", num_attempts, *window
        self.rng = np.random.default_rng(self.seed)

    def draw(self, input: RecordBatch) -> TensorBuffer:
        decoders.check_records("OFRecordImageDecoderRandomCrop", input, self.how[0])
        return decoders._crops(input, self.rng, *self.how)


class CoinFlip(_Source):
    """Each call gives int8 (batch_size,): 1 with this probability, else 0. For CropMirrorNormalize's mirror."""

    def __init__(self, batch_size: int = 1, random_seed: int | None = None, probability: float = 0.5, device=None,
                 placement=None, sbp=None):
        super().__init__(random_seed)
        _check_coins(batch_size, probability)
        self.batch_size, self.probability, self.rng = batch_size, probability, np.random.default_rng(self.seed)
        self.where = device, False, placement, sbp

    def draw(self) -> Tensor:
        return finished(tensor((self.rng.random(self.batch_size) < self.probability).astype(np.int8)), *self.where)


class CropMirrorNormalize(Module):
    """(picture - mean) / std of a piece of each picture, mirrored where `mirror` is not 0. See flow.image."""

    def __init__(self, color_space: str = "BGR", output_layout: str = "NCHW", crop_h: int = 0, crop_w: int = 0,
                 crop_pos_y: float = 0.5, crop_pos_x: float = 0.5, mean: Sequence[float] = (0.0,),
                 std: Sequence[float] = (1.0,), output_dtype: dt.dtype = dt.float32):
        super().__init__()
        self.options = {"color_space": color_space, "output_layout": output_layout, "crop_h": crop_h, "crop_w": crop_w,
                        "crop_pos_y": crop_pos_y, "crop_pos_x": crop_pos_x, "mean": mean, "std": std,
                        "output_dtype": output_dtype}

    def forward(self, input, mirror: Tensor | None = None) -> Tensor:
        return crop_mirror.CropMirrorNormalize(input, mirror, **self.options)


OfrecordReader, OfrecordRawDecoder, OfrecordBytesDecoder = OFRecordReader, OFRecordRawDecoder, OFRecordBytesDecoder
