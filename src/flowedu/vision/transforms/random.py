"""Random image transforms. `flow.manual_seed(n)` makes them reproducible."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from flowedu.errors import ArgumentError
from flowedu.vision.transforms import draw
from flowedu.vision.transforms import functional as F
from flowedu.vision.transforms.fixed import Compose, Transform, check_callable
from flowedu.vision.transforms.resample import InterpolationMode, check_mode


def _probability(what: str, p: float) -> float:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{what}: p is not a probability", expected="0 to 1", got=repr(p), fix="p=0.5")
    return p


class _Flip(Transform):
    shown = ("p",)

    def __init__(self, p: float = 0.5):
        self.p = _probability(type(self).__name__, p)


class RandomHorizontalFlip(_Flip):
    """Horizontal flip with probability p.

    Args:
        p: probability.
    """

    def forward(self, img):
        return F.hflip(img) if draw.chance(self.p) else img


class RandomVerticalFlip(_Flip):
    """Vertical flip with probability p.

    Args:
        p: probability.
    """

    def forward(self, img):
        return F.vflip(img) if draw.chance(self.p) else img


class RandomGrayscale(Transform):
    """Conversion to gray, with an unchanged number of channels, with probability p.

    Args:
        p: probability.
    """

    shown = ("p",)

    def __init__(self, p: float = 0.1):
        self.p = _probability("RandomGrayscale", p)

    def forward(self, img):
        return F.rgb_to_grayscale(img, F.get_dimensions(img)[0]) if draw.chance(self.p) else img


class RandomCrop(Transform):
    """Region of a fixed size at a random position.

    Args:
        size: (height, width), or an int.
        padding: padding added first, see functional.pad; default: none.
        pad_if_needed: pad images that are too small.
        fill: constant of the padding.
        padding_mode: mode of the padding.

    Raises:
        ArgumentError (a ValueError): an image that is too small.
    """

    shown = ("size", "padding")

    def __init__(self, size: int | Sequence[int], padding: int | Sequence[int] | None = None,
                 pad_if_needed: bool = False, fill=0, padding_mode: str = "constant"):
        self.size, self.padding, self.pad_if_needed = (F.pair("RandomCrop", "size", size), padding,
                                                       pad_if_needed)
        self.fill, self.padding_mode = fill, padding_mode

    @staticmethod
    def get_params(img, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Return (top, left, height, width) of a random region."""
        _, h, w = F.get_dimensions(img)
        height, width = output_size
        if height > h or width > w:
            raise ArgumentError(f"RandomCrop: Required crop size {(height, width)} is larger than input "
                                f"image size {(h, w)}", expected=f"at most {(h, w)}",
                                got=str((height, width)), fix="pad_if_needed=True, or padding=...")
        return draw.whole(0, h - height + 1), draw.whole(0, w - width + 1), height, width

    def forward(self, img):
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            _, h, w = F.get_dimensions(img)
            across, down = max(self.size[1] - w, 0), max(self.size[0] - h, 0)
            if across or down:          # on both sides, as in torchvision, so that all positions are possible
                img = F.pad(img, (across, down), self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))


class RandomResizedCrop(Transform):
    """Region with a random share of the area and a random shape, resized.

    Args:
        size: (height, width) of the result, or an int.
        scale: range of the share of the area.
        ratio: range of width / height.
        interpolation: an InterpolationMode.
        antialias: use all pixels when the region shrinks.
    """

    shown = ("size", "scale", "ratio", "interpolation", "antialias")

    def __init__(self, size: int | Sequence[int], scale: tuple[float, float] = (0.08, 1.0),
                 ratio: tuple[float, float] = (3 / 4, 4 / 3),
                 interpolation: InterpolationMode = InterpolationMode.BILINEAR, antialias: bool = True):
        self.size = F.pair("RandomResizedCrop", "size", size)
        for name, (low, high) in (("scale", scale), ("ratio", ratio)):
            if not 0 < low <= high or name == "scale" and high > 1:
                raise ArgumentError(f"RandomResizedCrop: {name} does not fit", got=repr((low, high)),
                                    expected="(low, high) with 0 < low <= high" + " <= 1" * (name == "scale"))
        self.scale, self.ratio, self.antialias = tuple(scale), tuple(ratio), antialias
        self.interpolation = check_mode("RandomResizedCrop", interpolation)

    @staticmethod
    def get_params(img, scale: tuple[float, float], ratio: tuple[float, float]) -> tuple[int, int, int, int]:
        """Return (top, left, height, width) of a random region, or of a central one if ten do not fit."""
        _, h, w = F.get_dimensions(img)
        for _ in range(10):
            area, shape = h * w * draw.uniform(*scale), draw.log_uniform(*ratio)
            width, height = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if 0 < width <= w and 0 < height <= h:
                return draw.whole(0, h - height + 1), draw.whole(0, w - width + 1), height, width
        if w / h < ratio[0]:
            width, height = w, min(round(w / ratio[0]), h)
        elif w / h > ratio[1]:
            width, height = min(round(h * ratio[1]), w), h
        else:
            width, height = w, h
        return (h - height) // 2, (w - width) // 2, height, width

    def forward(self, img):
        top, left, height, width = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, top, left, height, width, self.size, self.interpolation, self.antialias)


class ColorJitter(Transform):
    """Random changes of brightness, contrast, saturation, and hue, in random order.

    Args:
        brightness: (low, high) of the factor, or x for the range from max(0, 1 - x) to 1 + x.
        contrast: the same.
        saturation: the same.
        hue: (low, high) of the shift, or x for the range from -x to x, at most 0.5.
    """

    shown = ("brightness", "contrast", "saturation", "hue")

    def __init__(self, brightness=0.0, contrast=0.0, saturation=0.0, hue=0.0):
        low, high = hue if isinstance(hue, (tuple, list)) else (-hue, hue)
        if not -0.5 <= low <= high <= 0.5:
            raise ArgumentError("ColorJitter: hue does not fit",
                                expected="a number from 0 to 0.5, or (low, high)", got=repr(hue))
        self.hue = None if low == high == 0 else (low, high)
        for name, value in (("brightness", brightness), ("contrast", contrast), ("saturation", saturation)):
            low, high = value if isinstance(value, (tuple, list)) else (max(0.0, 1.0 - value), 1.0 + value)
            if not 0 <= low <= high:
                raise ArgumentError(f"ColorJitter: {name} does not fit",
                                    expected="a number of 0 or more, or (low, high)", got=repr(value))
            setattr(self, name, None if low == high == 1 else (low, high))

    def forward(self, img):
        names = [n for n in self.shown if getattr(self, n) is not None]
        for i in draw.order(len(names)):
            img = getattr(F, f"adjust_{names[i]}")(img, draw.uniform(*getattr(self, names[i])))
        return img


class GaussianBlur(Transform):
    """Gaussian blur with a random width.

    Args:
        kernel_size: odd number of pixels, or a pair of them for (x, y).
        sigma: (low, high) of the standard deviation, or a number.
    """

    shown = ("kernel_size", "sigma")

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)):
        low, high = sigma if isinstance(sigma, (tuple, list)) else (sigma, sigma)
        if not 0 < low <= high:
            raise ArgumentError("GaussianBlur: sigma does not fit",
                                expected="a number above 0, or (low, high)", got=repr(sigma))
        self.kernel_size, self.sigma = kernel_size, (low, high)

    def forward(self, img):
        return F.gaussian_blur(img, self.kernel_size, draw.uniform(*self.sigma))


class RandomApply(Transform):
    """All transforms with probability p, or none.

    Args:
        transforms: transforms, in order.
        p: probability.
    """

    def __init__(self, transforms: Sequence[Callable], p: float = 0.5):
        self.transforms, self.p = Compose(transforms), _probability("RandomApply", p)

    def forward(self, img):
        return self.transforms(img) if draw.chance(self.p) else img

    def __repr__(self) -> str:
        return f"RandomApply(\n    p={self.p}\n" + repr(self.transforms).split("\n", 1)[1]


class RandomChoice(Transform):
    """One random transform of several.

    Args:
        transforms: transforms.
    """

    def __init__(self, transforms: Sequence[Callable]):
        self.transforms = [check_callable("RandomChoice", t) for t in transforms]

    def forward(self, img):
        return self.transforms[draw.whole(0, len(self.transforms))](img)

    def __repr__(self) -> str:
        return f"RandomChoice({self.transforms})"


class RandomOrder(RandomChoice):
    """All transforms in random order.

    Args:
        transforms: transforms.
    """

    def forward(self, img):
        for i in draw.order(len(self.transforms)):
            img = self.transforms[i](img)
        return img

    def __repr__(self) -> str:
        return f"RandomOrder({self.transforms})"
