"""flow.image.Resize: resizes images to one size, or scales them in proportion (OneFlow 0.4)."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError
from flowedu.oneflow04.functions.tensor_buffers import need_buffer
from flowedu.oneflow04.image import resample
from flowedu.oneflow04.image.decode import check_color_space
from flowedu.oneflow04.image.pictures import allocate_output, check_pictures, pixel_type
from flowedu.oneflow04.image.threads import each, much
from flowedu.ops.front import front
from flowedu.ops.host import anew, define_host


@anew
def _fixed(x: TensorBuffer, width: int, height: int, channels: int, dtype: dt.dtype, kind: str):
    check_pictures("image.Resize", x, channels)
    out = allocate_output((x.size, height, width, channels), dtype)
    list(each(lambda i: resample.resize(x.items[i], height, width, kind, out[i]), range(x.size),
              much(out.size)))
    scale = np.array([(width / a.shape[1], height / a.shape[0]) for a in x.items], np.float32).reshape(-1, 2)
    return out, scale


_fixed_op = define_host("image_resize_to_fixed(x, *, width, height, channels, dtype, kind) -> y, scale",
                        host=_fixed,
                        shape=lambda x, width, height, channels: ((*x.shape, height, width, channels),
                                                                  (*x.shape, 2)),
                        dtype=lambda dtype: (dtype, dt.float32))


def _resize_in_proportion(x: TensorBuffer, target: int, shortest: int, longest: int, longer: bool, kind: str):
    check_pictures("image.Resize", x)
    shapes = [resample.fit_in_proportion(a.shape[0], a.shape[1], target, shortest, longest, longer)
              for a in x.items]
    numbers = sum(h * w * a.shape[2] for a, (h, w) in zip(x.items, shapes))
    each_one = each(lambda i: resample.resize(x.items[i], *shapes[i], kind), range(x.size), much(numbers))
    out = TensorBuffer(list(each_one), x.shape)
    size = np.array(shapes, np.int32).reshape(-1, 2)[:, ::-1]
    before = np.array([a.shape[:2] for a in x.items], np.float32).reshape(-1, 2)[:, ::-1]
    return out, (size / before).astype(np.float32), size


_kept_op = define_host("image_resize_keep_aspect_ratio(x, *, target, shortest, longest, longer, kind) -> y, "
                       "scale, size",
                       host=_resize_in_proportion, shape=lambda x: (x.shape, (*x.shape, 2), (*x.shape, 2)),
                       dtype=lambda: (dt.tensor_buffer, dt.float32, dt.int32))


@front("ImageResize")
def _resize_fixed(image, target_size, channels, dtype, kind):
    width, height = target_size
    return _fixed_op(image, width=width, height=height, channels=channels, dtype=dtype, kind=kind)


@front("ImageResize")
def _resize_kept(image, target, shortest, longest, longer, kind):
    return _kept_op(image, target=target, shortest=shortest, longest=longest, longer=longer, kind=kind)


def Resize(image, target_size: int | Sequence[int] | None = None, min_size: int | None = None,
           max_size: int | None = None,
           keep_aspect_ratio: bool = False, resize_side: str = "shorter", channels: int = 3,
           dtype: dt.dtype | None = None,
           interpolation_type: str = "auto", name: str | None = None, color_space: str | None = None,
           interp_type: str | None = None, resize_shorter: int = 0, resize_x: int = 0, resize_y: int = 0):
    """Resize images.

    Args:
        image: a TensorBuffer of shape (N,) of images.
        target_size: (width, height); with keep_aspect_ratio the size of one side.
        min_size: the smallest shorter side, if the longer side is set.
        max_size: the largest longer side, if the shorter side is set.
        keep_aspect_ratio: scale both sides by the same factor.
        resize_side: the side that becomes target_size, "shorter" or "longer".
        channels: the number of channels.
        dtype: uint8 or float32; None is uint8.
        interpolation_type: "auto" (area to shrink, bilinear to enlarge), "bilinear", "nearest_neighbor" or
            "nn", "bicubic", or "area".
        color_space: deprecated; sets channels.
        interp_type: deprecated; "Linear", "NN", or "Cubic".
        resize_shorter: deprecated; the size of the shorter side.
        resize_x: deprecated; the width.
        resize_y: deprecated; the height.

    Returns: (images, scale, None), where images has the shape (N, height, width, channels), and scale (N, 2)
    has the factors of width and height. With keep_aspect_ratio the result is (images, scale, new_size), where
    images is a TensorBuffer, and new_size (N, 2) has width and height as int32. With any of the deprecated
    arguments, only the images are returned.
    """
    what, deprecated = "image.Resize", []
    need_buffer(what, image, rank=1)
    if color_space is not None:
        deprecated.append("color_space is deprecated: use channels")
        channels = check_color_space(what, color_space)
    if interp_type is not None:
        deprecated.append("interp_type is deprecated: use interpolation_type")
        kinds = {"Linear": "bilinear", "NN": "nearest_neighbor", "Cubic": "bicubic"}
        if interp_type not in kinds:
            raise ArgumentError(f"{what}: unknown interp_type", expected=", ".join(kinds),
                                got=repr(interp_type), fix='interpolation_type="bilinear", say')
        interpolation_type = kinds[interp_type]
    if resize_x > 0 and resize_y > 0:
        deprecated.append("resize_x and resize_y are deprecated: use target_size")
        target_size, keep_aspect_ratio = (resize_x, resize_y), False
    if resize_shorter > 0:
        deprecated.append("resize_shorter is deprecated: use target_size and keep_aspect_ratio")
        target_size, keep_aspect_ratio, resize_side = resize_shorter, True, "shorter"
    for d in deprecated:
        print(f"WARNING: {what}: {d}")
    kind = resample.check_kind(what, interpolation_type)
    if keep_aspect_ratio:
        results = _resize_kept(image, *_check_target(what, target_size, min_size, max_size, resize_side),
                               kind, name=name)
    else:
        if not isinstance(target_size, (list, tuple)) or len(target_size) != 2 or any(
                type(n) is not int or n < 1 for n in target_size):
            raise ArgumentError(f"{what}: target_size must be a form like (width, height) when "
                                f"keep_aspect_ratio is False",
                                expected="two ints above zero: (width, height)", got=repr(target_size),
                                fix=f"target_size=({target_size}, {target_size}), or keep_aspect_ratio=True"
                                if
                                isinstance(target_size, int) else "target_size=(224, 224), say")
        dtype = dt.uint8 if dtype is None else pixel_type(what, dtype)
        results = (*_resize_fixed(image, tuple(target_size), channels, dtype, kind, name=name), None)
    return results[0] if deprecated else results


def _check_target(what: str, target_size, min_size, max_size, resize_side) -> tuple[int, int, int, bool]:
    if type(target_size) is not int or target_size < 1:
        raise ArgumentError(f"{what}: target_size must be an int when keep_aspect_ratio is True",
                            got=repr(target_size),
                            expected="an int above zero", fix="the size of one side; the other follows")
    if resize_side not in ("shorter", "longer"):
        raise ArgumentError(f'{what}: resize_side must be "shorter" or "longer"',
                            expected='"shorter" or "longer"',
                            got=repr(resize_side), fix='resize_side="shorter"')
    low, high = min_size or 0, max_size or 0
    if low > target_size or 0 < high < target_size:
        raise ArgumentError(f"{what}: target_size is outside the limits",
                            expected="min_size <= target_size <= max_size",
                            got=f"min_size={min_size}, target_size={target_size}, max_size={max_size}",
                            fix="min_size limits the shorter side, max_size the longer")
    return target_size, low, high, resize_side == "longer"


def target_resize(images, target_size: int, min_size: int | None = None, max_size: int | None = None,
                  resize_side: str = "shorter", interpolation_type: str = "auto", name: str | None = None):
    """Resize images with keep_aspect_ratio.

    Args:
        images: a TensorBuffer of shape (N,) of images.
        target_size: the new size of one side.
        min_size: the smallest shorter side, if the longer side is set.
        max_size: the largest longer side, if the shorter side is set.
        resize_side: the side that becomes target_size, "shorter" or "longer".
        interpolation_type: as for Resize.

    Returns: (images, new_size, scale). Resize returns them in another order.
    """
    image, scale, size = Resize(images, target_size, min_size, max_size, True, resize_side, name=name,
                                interpolation_type=interpolation_type)
    return image, size, scale
