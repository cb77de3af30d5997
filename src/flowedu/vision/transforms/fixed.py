"""Deterministic transforms and combinations of transforms, passed to a dataset as `transform=`."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from flowedu.core.layers.module import Module
from flowedu.errors import CallError
from flowedu.vision.transforms import functional as F
from flowedu.vision.transforms.resample import InterpolationMode, check_mode


class Transform(Module):
    """A picture in, a picture out: a Module, so that nn.Sequential takes it, which needs no super().__init__(). Subclasses
    define forward and say in `shown` which attributes to print."""

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
    """`f` if it can be called. Raises CallError (a TypeError)."""
    if not callable(f):
        raise CallError(f"{what}: this cannot be called", expected="a transform or a function", got=repr(f)[:60],
                        fix="put the class's parentheses: ToTensor()")
    return f


class Compose(Transform):
    """One transform after the other."""

    def __init__(self, transforms: Sequence[Callable]):
        if callable(transforms) and not isinstance(transforms, Iterable):
            raise CallError("Compose: transforms is one transform", expected="a list of them", got=repr(transforms)[:60],
                            fix="Compose([...])")
        self.transforms = [check_callable("Compose", t) for t in transforms]

    def forward(self, img):
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        lines = ["    " + repr(t).replace("\n", "\n    ") for t in self.transforms]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


class Lambda(Transform):
    """Any function as a transform."""

    def __init__(self, lambd: Callable):
        self.lambd = check_callable("Lambda", lambd)

    def forward(self, img):
        return self.lambd(img)

    def __repr__(self) -> str:
        return "Lambda()"


class ToTensor(Transform):
    """A Pillow image or an ndarray (H, W, C) of uint8 0 to 255 as a float32 tensor (C, H, W) of 0 to 1."""

    def forward(self, pic):
        return F.to_tensor(pic)


class PILToTensor(Transform):
    """A Pillow image as a tensor (C, H, W) of the same numbers."""

    def forward(self, pic):
        return F.pil_to_tensor(pic)


class ConvertImageDtype(Transform):
    """A tensor in another dtype, scaled to its range."""

    shown = ("dtype",)

    def __init__(self, dtype):
        self.dtype = dtype

    def forward(self, image):
        return F.convert_image_dtype(image, self.dtype)


class ToPILImage(Transform):
    """A tensor (C, H, W) or an ndarray (H, W, C) as a Pillow image."""

    def __init__(self, mode: str | None = None):
        self.mode = mode

    def forward(self, pic):
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"ToPILImage({'' if self.mode is None else f'mode={self.mode}'})"


class Normalize(Transform):
    """(x - mean) / std for each channel."""

    shown = ("mean", "std")

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False):
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor):
        return F.normalize(tensor, self.mean, self.std, self.inplace)


class Resize(Transform):
    """See functional.resize."""

    shown = ("size", "interpolation", "max_size", "antialias")

    def __init__(self, size: int | Sequence[int], interpolation: InterpolationMode = InterpolationMode.BILINEAR,
                 max_size: int | None = None, antialias: bool = True):
        F.pair("Resize", "size", size)
        self.size, self.interpolation = size, check_mode("Resize", interpolation)
        self.max_size, self.antialias = max_size, antialias

    def forward(self, img):
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(Transform):
    """The middle of a picture."""

    shown = ("size",)

    def __init__(self, size: int | Sequence[int]):
        self.size = F.pair("CenterCrop", "size", size)

    def forward(self, img):
        return F.center_crop(img, self.size)


class Pad(Transform):
    """More on the sides: see functional.pad."""

    shown = ("padding", "fill", "padding_mode")

    def __init__(self, padding: int | Sequence[int], fill=0, padding_mode: str = "constant"):
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img):
        return F.pad(img, self.padding, self.fill, self.padding_mode)


class Grayscale(Transform):
    """Grey, with 1 or 3 channels."""

    shown = ("num_output_channels",)

    def __init__(self, num_output_channels: int = 1):
        self.num_output_channels = num_output_channels

    def forward(self, img):
        return F.rgb_to_grayscale(img, self.num_output_channels)
