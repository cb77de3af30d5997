"""Base class of the image datasets."""
from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flowedu.errors import ArgumentError
from flowedu.utils.data import Dataset


@cache
def _image():
    try:
        from PIL import Image
    except ImportError:
        return None
    return Image


def picture(pixels: np.ndarray):
    """Return uint8 pixels (H, W) or (H, W, C) as a Pillow image, or unchanged without Pillow."""
    image = _image()
    return pixels if image is None else image.fromarray(np.ascontiguousarray(pixels))


class VisionDataset(Dataset):
    """Data set of (image, label) pairs.

    Subclasses define __len__ and raw(index), which returns (image, label).

    Args:
        root: folder of the files; default: None.
        transforms: function of (image, label) that returns (image, label); default: transform
            and target_transform.
        transform: function of the image, such as transforms.ToTensor(); default: none.
        target_transform: function of the label; default: none.
    """

    def __init__(self, root: str | os.PathLike | None = None, transforms: Callable | None = None,
                 transform: Callable | None = None, target_transform: Callable | None = None):
        if transforms is not None and (transform is not None or target_transform is not None):
            raise ArgumentError(f"{type(self).__name__}: Only transforms or transform/target_transform can "
                                f"be passed as argument", expected="one of the two", got="both",
                                fix="leave transforms out")
        self.root = None if root is None else Path(root).expanduser()
        self.transforms, self.transform, self.target_transform = transforms, transform, target_transform

    if TYPE_CHECKING:
        def __len__(self) -> int: ...

    def raw(self, index: int):
        """Return (image, label) as stored in the files."""
        raise NotImplementedError

    def __getitem__(self, index: int):
        img, target = self.raw(index)
        if self.transforms is not None:
            return self.transforms(img, target)
        if self.transform is not None:
            img = self.transform(img)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return img, target

    def extra_repr(self) -> str:
        """Return an additional line of the repr, such as "Split: Train"."""
        return ""

    def __repr__(self) -> str:
        lines = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            lines.append(f"Root location: {self.root}")
        lines += self.extra_repr().splitlines()
        if self.transforms is not None or self.transform is not None or self.target_transform is not None:
            lines.append("StandardTransform")
        lines = ["    " + line for line in lines]
        for label, t in (("Transforms", self.transforms), ("Transform", self.transform),
                         ("Target transform", self.target_transform)):
            if t is not None:
                lines.append(f"{label}: " + repr(t).replace("\n", "\n" + " " * (len(label) + 2)))
        return "\n".join([f"Dataset {type(self).__name__}", *lines])
