"""Deterministic transforms and combinations of transforms, passed to a dataset as `transform=`."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from flowedu.core.layers.module import Module
from flowedu.errors import CallError
from flowedu.vision.transforms import functional as F
from flowedu.vision.transforms.resample import InterpolationMode, check_mode


class Transform(Module):
    """Base class of transforms: a Module from image to image that does not need super().__init__().

    Subclasses define forward, and list the printed attributes in `shown`.
    """

    shown: tuple[str, ...] = ()

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls)
        Module.__init__(self)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={_short(getattr(self, n))}' for n in self.shown)})"


def _short(value) -> str:
    return value.value if isinstance(value, InterpolationMode) else str(value)


def check_callable(what: str, f) -> Callable:
    """Return f if it is callable; raise CallError (a TypeError) otherwise."""
    if not callable(f):
        raise CallError(f"{what}: this cannot be called", expected="a transform or a function",
                        got=repr(f)[:60], fix="put the class's parentheses: ToTensor()")
    return f


class Compose(Transform):
    """Sequence of transforms.

    Args:
        transforms: transforms, in order.
    """

    def __init__(self, transforms: Sequence[Callable]):
        if callable(transforms) and not isinstance(transforms, Iterable):
            raise CallError("Compose: transforms is one transform", expected="a list of them",
                            got=repr(transforms)[:60], fix="Compose([...])")
        self.transforms = [check_callable("Compose", t) for t in transforms]

    def forward(self, img):
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        lines = ["    " + repr(t).replace("\n", "\n    ") for t in self.transforms]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


class Lambda(Transform):
    """Function as a transform.

    Args:
        lambd: function of the image.
    """

    def __init__(self, lambd: Callable):
        self.lambd = check_callable("Lambda", lambd)

    def forward(self, img):
        return self.lambd(img)

    def __repr__(self) -> str:
        return "Lambda()"


class ToTensor(Transform):
    """Conversion of a Pillow image or ndarray (H, W, C) of uint8 to a float32 tensor (C, H, W) in 0 to 1."""

    def forward(self, pic):
        return F.to_tensor(pic)


class PILToTensor(Transform):
    """Conversion of a Pillow image to a tensor (C, H, W) with the same values."""

    def forward(self, pic):
        return F.pil_to_tensor(pic)


class ConvertImageDtype(Transform):
    """Conversion of a tensor to another dtype, scaled to its range.

    Args:
        dtype: dtype.
    """

    shown = ("dtype",)

    def __init__(self, dtype):
        self.dtype = dtype

    def forward(self, image):
        return F.convert_image_dtype(image, self.dtype)


class ToPILImage(Transform):
    """Conversion of a tensor (C, H, W) or ndarray (H, W, C) to a Pillow image.

    Args:
        mode: Pillow's mode; default: by the number of channels.
    """

    def __init__(self, mode: str | None = None):
        self.mode = mode

    def forward(self, pic):
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"ToPILImage({'' if self.mode is None else f'mode={self.mode}'})"


class Normalize(Transform):
    """Normalization (x - mean) / std for each channel.

    Args:
        mean: number per channel.
        std: number per channel.
        inplace: write into the tensor.
    """

    shown = ("mean", "std")

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False):
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor):
        return F.normalize(tensor, self.mean, self.std, self.inplace)


class Resize(Transform):
    """Resizing; see functional.resize.

    Args:
        size: (height, width), or the size of the shorter side.
        interpolation: an InterpolationMode.
        max_size: largest size of the longer side; default: no limit.
        antialias: use all pixels when the image shrinks.
    """

    shown = ("size", "interpolation", "max_size", "antialias")

    def __init__(self, size: int | Sequence[int],
                 interpolation: InterpolationMode = InterpolationMode.BILINEAR,
                 max_size: int | None = None, antialias: bool = True):
        F.pair("Resize", "size", size)
        self.size, self.interpolation = size, check_mode("Resize", interpolation)
        self.max_size, self.antialias = max_size, antialias

    def forward(self, img):
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(Transform):
    """Central region of an image.

    Args:
        size: (height, width), or an int.
    """

    shown = ("size",)

    def __init__(self, size: int | Sequence[int]):
        self.size = F.pair("CenterCrop", "size", size)

    def forward(self, img):
        return F.center_crop(img, self.size)


class Pad(Transform):
    """Padding of the sides; see functional.pad.

    Args:
        padding: one number, (left and right, top and bottom), or (left, top, right, bottom).
        fill: constant of mode "constant".
        padding_mode: "constant", "edge", "reflect", or "symmetric".
    """

    shown = ("padding", "fill", "padding_mode")

    def __init__(self, padding: int | Sequence[int], fill=0, padding_mode: str = "constant"):
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img):
        return F.pad(img, self.padding, self.fill, self.padding_mode)


class Grayscale(Transform):
    """Conversion to gray.

    Args:
        num_output_channels: 1, or 3 equal channels.
    """

    shown = ("num_output_channels",)

    def __init__(self, num_output_channels: int = 1):
        self.num_output_channels = num_output_channels

    def forward(self, img):
        return F.rgb_to_grayscale(img, self.num_output_channels)
