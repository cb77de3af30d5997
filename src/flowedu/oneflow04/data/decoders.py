"""Decoders from a batch of records to arrays (raw values) or to TensorBuffers of bytes or images.

    records = flow.data.ofrecord_reader("digits", batch_size=32)
    # labels: (32,). images: 32 of (H, W, 3).
    labels = flow.data.OFRecordRawDecoder(records, "class/label", shape=(), dtype=flow.int32)
    images = flow.data.OFRecordImageDecoder(records, "encoded", color_space="RGB")
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.layers.context import gen_seed
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, DataError, DTypeError, ShapeError
from flowedu.errors.once import inert
from flowedu.oneflow04.data.reader import ofrecord_reader
from flowedu.oneflow04.functions.tensor_buffers import need_buffer
from flowedu.oneflow04.image import resample
from flowedu.oneflow04.image.decode import check_color_space, check_crop, crop_window, decode_images
from flowedu.oneflow04.random import name_once, seed_of
from flowedu.ops.front import front
from flowedu.ops.host import anew, define_host


def check_records(what: str, records, blob_name) -> None:
    """Raise an error unless `records` is a batch of records and `blob_name` is a string."""
    if records.dtype is not dt.record or records.ndim != 1:
        raise DTypeError(f"{what}: the input is not a batch of records",
                         expected="what flow.data.ofrecord_reader gives",
                         got=str(records), fix=f"{what}(flow.data.ofrecord_reader(...), {blob_name!r}, ...)")
    if not isinstance(blob_name, str):
        raise ArgumentError(f"{what}: blob_name is not a str", expected="the name of a feature",
                            got=repr(blob_name), fix='blob_name="class/label"')


# ---- numeric features
def check_raw(records, blob_name, shape, dtype):
    """Raise an error unless the arguments of OFRecordRawDecoder fit."""
    check_records("OFRecordRawDecoder", records, blob_name)
    if any(n < 1 for n in shape):
        raise ShapeError("OFRecordRawDecoder: shape is the shape of one sample, of known sizes",
                         expected="sizes of 1 or more", got=str(shape),
                         fix="leave the batch axis out: shape=(28, 28) for images, () for labels")
    if not isinstance(dtype, dt.dtype) or dtype.numpy is None:
        raise DTypeError("OFRecordRawDecoder: dtype is not numeric", expected="flow.float32, flow.int32, ...",
                         got=repr(dtype), fix="for bytes of any length use OFRecordBytesDecoder")


@anew
def raw_array(records, blob_name, shape, dtype, dim1_varying_length, truncate) -> np.ndarray:
    """Return a numeric feature of all records as an array."""
    what, size, rows = "OFRecordRawDecoder", prod(shape), []
    for raw, kind, values in records.features(blob_name, what):
        if kind == "bytes_list":
            row = _bytes(raw, blob_name, values, what).view(np.int8 if dtype.numpy == np.int8 else np.uint8)
        else:
            row = np.asarray(values)
        n = len(row)
        if n != size:
            if not truncate and not (dim1_varying_length and n < size):
                raise DataError(f"{what}: the feature {blob_name!r} of the record at {raw.where} has "
                                f"another size",
                                expected=f"{size} elements for shape {shape}", got=f"{n} elements",
                                fix="give the shape of one sample; truncate=True cuts off what is too much "
                                "and fills up with zeros")
            row = row[:size] if n > size else np.concatenate([row, np.zeros(size - n, row.dtype)])
        rows.append(row)
    wide = np.concatenate(rows).reshape(-1, size)
    out = wide.astype(dtype.numpy)
    if wide.dtype.kind in "iu" and out.dtype.kind in "iu" and not np.array_equal(out, wide):
        i = int((out != wide).any(axis=1).argmax())
        raise DataError(f"{what}: the feature {blob_name!r} of the record at {records.raw[i].where} does "
                        f"not fit {dtype.name}",
                        expected=f"{np.iinfo(out.dtype).min} to {np.iinfo(out.dtype).max}",
                        got=f"{wide[i].min()} to {wide[i].max()}", fix="dtype=flow.int64")
    return out.reshape(len(records), *shape)


def _bytes(raw, blob_name, values, what) -> np.ndarray:
    """Return the one entry of a bytes_list as uint8."""
    if len(values) != 1:
        raise DataError(f"{what}: the feature {blob_name!r} of the record at {raw.where} is a list",
                        expected="one bytes entry", got=f"{len(values)} entries",
                        fix="write each under a name of its own")
    return np.frombuffer(values[0], np.uint8)


_raw_op = define_host("ofrecord_raw_decoder(records, *, blob_name, shape, dtype, dim1_varying_length, "
                      "truncate) -> out",
                      host=raw_array, check=check_raw, shape=lambda records, shape: records.shape + shape,
                      dtype=lambda dtype: dt.int8 if dtype is dt.char else dtype,
                      doc="A numeric feature, as an array.")


@front("OFRecordRawDecoder", "out")
def OFRecordRawDecoder(input_blob, blob_name: str, shape: Sequence[int], dtype: dt.dtype,
                       dim1_varying_length: bool = False,
                       auto_zero_padding: bool = False, *, truncate: bool = False):
    """Decode a numeric feature of every record.

    Numbers are converted to `dtype`; integers that do not fit raise an error. A feature of bytes has one
    value per byte, 0 to 255.

    Args:
        input_blob: a batch of N records.
        blob_name: the name of the feature.
        shape: the shape of one sample. Every sample must have as many values.
        dtype: the dtype of the result.
        dim1_varying_length: accept shorter samples, which are padded with zeros.
        auto_zero_padding: the old name of truncate.
        truncate: also accept longer samples, which are cut.

    Returns: a blob of shape (N, *shape).

    Note:
        OneFlow's decoder converts bytes above 127 to negative numbers for all dtypes, including floats. In
        flowedu only the dtype int8 gives negative numbers.
    """
    if isinstance(shape, int):
        shape = (shape,)
    return _raw_op(input_blob, blob_name=blob_name, shape=tuple(map(int, shape)), dtype=dtype,
                   dim1_varying_length=bool(dim1_varying_length),
                   truncate=bool(truncate or auto_zero_padding))


# ---- bytes
def _check_bytes(records, blob_name, what):
    check_records(what, records, blob_name)


def _buffers(records, blob_name, what):
    found = []
    for raw, kind, values in records.features(blob_name, what):
        if kind != "bytes_list":
            raise DataError(f"{what}: the feature {blob_name!r} of the record at {raw.where} is not bytes",
                            expected="a bytes_list", got=f"a {kind}",
                            fix="OFRecordRawDecoder decodes numbers")
        found.append(_bytes(raw, blob_name, values, what))
    return TensorBuffer(found)


_bytes_op = define_host("ofrecord_bytes_decoder(records, *, blob_name, what) -> out", host=_buffers,
                        check=_check_bytes,
                        shape=lambda records: records.shape, dtype=lambda: dt.tensor_buffer,
                        doc="A feature of bytes, as a TensorBuffer of uint8 arrays.")


@front("OFRecordBytesDecoder", "out")
def OFRecordBytesDecoder(input_blob, blob_name: str):
    """Return a bytes feature of every record.

    Args:
        input_blob: a batch of N records.
        blob_name: the name of the feature.

    Returns: a TensorBuffer of shape (N,) of uint8 arrays, each with its own length.
    """
    return _bytes_op(input_blob, blob_name=blob_name, what="OFRecordBytesDecoder")


# ---- images
def _check_image(records, blob_name, color_space, what):
    check_records(what, records, blob_name)
    check_color_space(what, color_space)


def pictures(records, blob_name: str, color_space: str, what: str) -> Iterable[np.ndarray]:
    """Return the images of a batch, in order."""
    return decode_images(_buffers(records, blob_name, what).items, color_space,
                         lambda i: f"{what}: the feature {blob_name!r} of the record at "
                         f"{records.raw[i].where}")


_image_op = define_host("ofrecord_image_decoder(records, *, blob_name, color_space, what) -> out",
                        check=_check_image, host=lambda records, blob_name, color_space, what: TensorBuffer(
                            list(pictures(records, blob_name, color_space, what))),
                        shape=lambda records: records.shape, dtype=lambda: dt.tensor_buffer,
                        doc="A feature of PNG or JPEG bytes, as a TensorBuffer of uint8 images (H, W, C).")


@front("OFRecordImageDecoder", "out")
def OFRecordImageDecoder(input_blob, blob_name: str, color_space: str = "BGR"):
    """Decode a feature of PNG, JPEG, or BMP bytes of every record. Requires Pillow.

    Args:
        input_blob: a batch of N records.
        blob_name: the name of the feature.
        color_space: "BGR", "RGB", or "GRAY", which has one channel.

    Returns: a TensorBuffer of shape (N,) of uint8 images (height, width, channels).
    """
    return _image_op(input_blob, blob_name=blob_name, color_space=color_space, what="OFRecordImageDecoder")


def _crops(records, state, blob_name, color_space, what, num_attempts, area, ratio):
    rng = state or np.random.default_rng(gen_seed())
    found = []
    for picture in pictures(records, blob_name, color_space, what):
        found.append(picture[crop_window(rng, *picture.shape[:2], area, ratio, num_attempts)])
    return TensorBuffer(found)


_crop_op = define_host("ofrecord_image_decoder_random_crop(records, *, blob_name, color_space, what, "
                       "num_attempts, area, ratio, seed) -> out", host=_crops, check=_check_image,
                       shape=lambda records: records.shape,
                       dtype=lambda: dt.tensor_buffer, doc="Random crops of the images.",
                       state=lambda seed: None if seed is None else np.random.default_rng(seed))


@front("OFRecordImageDecoderRandomCrop", "out")
def _random_crop(input_blob, blob_name, color_space, num_attempts, seed, random_area, random_aspect_ratio):
    what = "OFRecordImageDecoderRandomCrop"
    area, ratio = check_crop(what, random_area, random_aspect_ratio, num_attempts)
    return _crop_op(input_blob, blob_name=blob_name, color_space=color_space, what=what,
                    num_attempts=num_attempts, area=area, ratio=ratio, seed=seed_of(seed))


def OFRecordImageDecoderRandomCrop(input_blob, blob_name: str, color_space: str = "BGR",
                                   num_attempts: int = 10,
                                   seed: int | None = None, random_area: Sequence[float] = (0.08, 1.0),
                                   random_aspect_ratio: Sequence[float] = (0.75, 1.333333),
                                   name: str = "OFRecordImageDecoderRandomCrop"):
    """Decode images as OFRecordImageDecoder and return a random crop of each. The crops differ in every run.

    Args:
        input_blob: a batch of N records.
        blob_name: the name of the feature.
        color_space: "BGR", "RGB", or "GRAY".
        num_attempts: the number of attempts to draw a crop that fits.
        seed: the seed of the crops; None derives it from flow.random.seed.
        random_area: the range of the area, as a fraction of the image.
        random_aspect_ratio: the range of the ratio of width to height.
    """
    return _random_crop(input_blob, blob_name, color_space, num_attempts, seed, random_area,
                        random_aspect_ratio, name=name_once(name))


def _crop_and_resize(x, state, width, height, num_attempts, area, ratio):
    rng = state or np.random.default_rng(gen_seed())
    out = np.empty((x.size, height, width, 3), np.uint8)
    what = "ImageDecoderRandomCropResize"
    for i, picture in enumerate(decode_images(x.items, "RGB", lambda i: f"{what}: {x.where(i)}")):
        piece = picture[crop_window(rng, *picture.shape[:2], area, ratio, num_attempts)]
        resample.resize(np.ascontiguousarray(piece), height, width, "bilinear", out[i])
    return out


_resized_op = define_host("image_decoder_random_crop_resize(x, *, width, height, num_attempts, area, ratio, "
                          "seed) -> out",
                          host=_crop_and_resize, shape=lambda x, width, height: (*x.shape, height, width, 3),
                          dtype=lambda: dt.uint8, state=lambda seed: None if seed is None
                          else np.random.default_rng(seed))


def ImageDecoderRandomCropResize(input_blob, target_width: int, target_height: int,
                                 num_attempts: int | None = None,
                                 seed: int | None = None, random_area: Sequence[float] | None = None,
                                 random_aspect_ratio: Sequence[float] | None = None,
                                 num_workers: int | None = None,
                                 warmup_size: int | None = None, max_num_pixels: int | None = None,
                                 name: str | None = None):
    """Decode PNG, JPEG, or BMP bytes as RGB and resize a random crop of each image to one size, bilinearly.

    Args:
        input_blob: a TensorBuffer of N byte arrays.
        target_width: the width of the result.
        target_height: the height of the result.
        num_attempts: the number of attempts to draw a crop that fits; None is 10.
        seed: the seed of the crops; None derives it from flow.random.seed.
        random_area: the range of the area, as a fraction of the image; None is (0.08, 1.0).
        random_aspect_ratio: the range of the ratio of width to height; None is (0.75, 1.333333).
        num_workers: has no effect; a setting of OneFlow's GPU decoder.
        warmup_size: has no effect; a setting of OneFlow's GPU decoder.
        max_num_pixels: has no effect; a setting of OneFlow's GPU decoder.

    Returns: uint8 of shape (N, target_height, target_width, 3).
    """
    why = "pictures are decoded on the CPU"
    inert("ImageDecoderRandomCropResize(num_workers)", num_workers, None, why)
    inert("ImageDecoderRandomCropResize(warmup_size)", warmup_size, None, why)
    inert("ImageDecoderRandomCropResize(max_num_pixels)", max_num_pixels, None, why)
    area, ratio = check_crop("ImageDecoderRandomCropResize", random_area or (0.08, 1.0),
                             random_aspect_ratio or (0.75, 1.333333), num_attempts or 10)
    return _resized(input_blob, int(target_width), int(target_height), num_attempts or 10, area, ratio,
                    seed_of(seed), name=name)


@front("ImageDecoderRandomCropResize", "out")
def _resized(input_blob, width, height, num_attempts, area, ratio, seed):
    need_buffer("ImageDecoderRandomCropResize", input_blob)
    return _resized_op(input_blob, width=width, height=height, num_attempts=num_attempts, area=area,
                       ratio=ratio, seed=seed)


image_decoder_random_crop_resize = ImageDecoderRandomCropResize
ofrecord_raw_decoder, ofrecord_bytes_decoder = OFRecordRawDecoder, OFRecordBytesDecoder
ofrecord_image_decoder, ofrecord_image_decoder_random_crop = (OFRecordImageDecoder,
                                                              OFRecordImageDecoderRandomCrop)


def ofrecord_image_classification_reader(
        ofrecord_dir: str, image_feature_name: str, label_feature_name: str, batch_size: int = 1,
        data_part_num: int = 1,
        part_name_prefix: str = "part-", part_name_suffix_length: int = -1, random_shuffle: bool = False,
        shuffle_buffer_size: int = 1024, shuffle_after_epoch: bool = False, color_space: str = "BGR",
        decode_buffer_size_per_thread: int = 32, num_decode_threads_per_machine: int | None = None,
        name: str | None = None, *, seed: int | None = None):
    """Read records and decode an image and a label of each.

    Args:
        ofrecord_dir: the folder of the files.
        image_feature_name: the name of the feature with PNG, JPEG, or BMP bytes.
        label_feature_name: the name of the feature with an integer.
        batch_size: the number N of records.
        data_part_num: the number of files.
        part_name_prefix: the start of the names of the files.
        part_name_suffix_length: the number of digits in the names; -1 does not pad.
        random_shuffle: shuffle through a buffer of `shuffle_buffer_size` records.
        shuffle_buffer_size: the size of this buffer.
        shuffle_after_epoch: shuffle the files after each epoch.
        color_space: "BGR", "RGB", or "GRAY".
        decode_buffer_size_per_thread: has no effect, because a job decodes ahead in its own thread.
        num_decode_threads_per_machine: has no effect.
        name: the name of the op of the images.
        seed: the seed of the shuffling; None derives it from flow.random.seed.

    Returns: (images, labels), a TensorBuffer of uint8 images (height, width, channels) and int32 of shape
    (N,).
    """
    why = "records are read and decoded ahead in a thread of their own"
    inert("ofrecord_image_classification_reader(decode_buffer_size_per_thread)",
          decode_buffer_size_per_thread, 32, why)
    inert("ofrecord_image_classification_reader(num_decode_threads_per_machine)",
          num_decode_threads_per_machine, None, why)
    names = (None, None, None) if name is None else (f"{name}-records", name, f"{name}-labels")
    records = ofrecord_reader(ofrecord_dir, batch_size, data_part_num, part_name_prefix,
                              part_name_suffix_length,
                              random_shuffle, shuffle_buffer_size, shuffle_after_epoch, name=names[0],
                              seed=seed)
    return (OFRecordImageDecoder(records, image_feature_name, color_space, name=names[1]),
            OFRecordRawDecoder(records, label_feature_name, (), dt.int32, name=names[2]))
