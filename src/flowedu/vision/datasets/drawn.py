"""Generated images, for demos without a network and benchmarks without a disk."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flowedu.errors import AxisError
from flowedu.vision.datasets.base import VisionDataset, picture


class FakeData(VisionDataset):
    """Noise images with random labels, which depend only on the index and on random_offset.

    Args:
        size: number of images.
        image_size: (channels, height, width) with 1 or 3 channels.
        num_classes: number of classes.
        transform: function of the image, such as transforms.ToTensor(); default: none.
        target_transform: function of the label; default: none.
        random_offset: seed of the images.
    """

    def __init__(self, size: int = 1000, image_size: tuple[int, int, int] = (3, 224, 224),
                 num_classes: int = 10,
                 transform: Callable | None = None, target_transform: Callable | None = None,
                 random_offset: int = 0):
        super().__init__(transform=transform, target_transform=target_transform)
        self.size, self.image_size = size, tuple(image_size)
        self.num_classes, self.random_offset = num_classes, random_offset

    def __len__(self) -> int:
        return self.size

    def raw(self, index: int):
        if not -self.size <= index < self.size:
            raise AxisError(f"FakeData: index {index} out of range", expected=f"0 to {self.size - 1}",
                            got=str(index))
        rng = np.random.default_rng((self.random_offset, index % self.size))
        channels, height, width = self.image_size
        pixels = rng.integers(0, 256, (height, width) if channels == 1 else (height, width, channels),
                              np.uint8)
        return picture(pixels), int(rng.integers(self.num_classes))


def _shapes(x, y, r, phase):
    """Return the pixels of each of the ten shapes; x and y are relative to the center, in units of the size.
    """
    far, box = np.hypot(x, y), np.maximum(np.abs(x), np.abs(y))
    thin = np.minimum(np.abs(x), np.abs(y)) < 0.3

    def wave(t):
        return np.sin((t * r + phase) * 1.3) > 0

    return {
        "disc": far < 1, "ring": (far < 1) & (far > 0.6), "square": box < 0.85,
        "frame": (box < 0.9) & (box > 0.55),
        "triangle": (y < 0.8) & (y > 1.7 * np.abs(x) - 0.9), "plus": (box < 1) & thin,
        "cross": (box < 0.9) & (np.minimum(np.abs(x - y), np.abs(x + y)) < 0.4),
        "bars": (box < 1.2) & wave(y), "columns": (box < 1.2) & wave(x),
        "checks": (box < 1.2) & (wave(x) ^ wave(y)), }


class SyntheticCIFAR10(VisionDataset):
    """Drawn images in the format of CIFAR-10 (uint8, 32 x 32 x 3, ten classes), for a demo without a network.

    **This is not CIFAR-10.** The class is the shape: disc, ring, square, frame, triangle, plus, cross, bars,
    columns, or checks. Position, size, colors, and noise are random, and the same in every run. A small
    network learns it in a minute.

    Args:
        train: True for the training part (10,000 images), False for the test part (2,000).
        transform: function of the image, such as transforms.ToTensor(); default: none.
        target_transform: function of the label; default: none.
        size: number of images; default: None, 10,000 or 2,000 (see train).
    """

    def __init__(self, train: bool = True, transform: Callable | None = None,
                 target_transform: Callable | None = None, size: int | None = None):
        super().__init__(transform=transform, target_transform=target_transform)
        self.train = train
        n = size
        if n is None:
            n = 10000 if train else 2000
        rng = np.random.default_rng(10 + train)
        self.targets: list[int] = (np.arange(n) % 10).tolist()
        self.data = np.empty((n, 32, 32, 3), np.uint8)
        center = np.zeros(1)
        self.classes = list(_shapes(center, center, 1.0, 0.0))
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        for i, name in enumerate(self.classes):
            self.data[i::10] = _draw(rng, name, len(self.data[i::10]))

    def __len__(self) -> int:
        return len(self.data)

    def raw(self, index: int):
        return picture(self.data[index]), self.targets[index]

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}\nDrawn shapes, not the pictures of CIFAR-10"


def _draw(rng: np.random.Generator, name: str, n: int) -> np.ndarray:
    """Return n images of one shape."""
    r = rng.uniform(7, 12, (n, 1, 1)).astype(np.float32)
    cx, cy = rng.uniform(11, 21, (2, n, 1, 1)).astype(np.float32)
    y, x = np.mgrid[0:32, 0:32].astype(np.float32)
    inside = _shapes((x - cx) / r, (y - cy) / r, r, rng.uniform(0, 5, (n, 1, 1)).astype(np.float32))[name]
    ground = rng.uniform(0, 255, (n, 1, 1, 3)).astype(np.float32)
    # Unlike the ground in every channel.
    colour = (ground + rng.uniform(70, 185, (n, 1, 1, 3)).astype(np.float32)) % 255
    out = rng.standard_normal((n, 32, 32, 3), np.float32)
    out *= 20
    out += np.where(inside[..., None], colour, ground)
    return np.clip(out, 0, 255, out=out).astype(np.uint8)
