"""Images in one folder per class: root/cat/1.png, root/dog/2.png."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from flowedu.errors import ArgumentError, DataError
from flowedu.utils.pictures import pillow
from flowedu.vision.datasets.base import VisionDataset

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class MissingFilesError(DataError, FileNotFoundError):
    """Error for folders without images."""


def find_classes(directory: str | os.PathLike) -> tuple[list[str], dict[str, int]]:
    """Return (sorted folder names, {name: number}); raise MissingFilesError if none exists.
    """
    try:
        entries: Iterator[os.DirEntry[str]] = os.scandir(directory)
        classes = sorted(e.name for e in entries if e.is_dir())
    except OSError as e:
        raise MissingFilesError(f"find_classes: cannot read {directory}", got=str(e),
                                expected="a folder with one folder for each class",
                                fix=f"make {Path(directory) / 'cat'}, say, and put its images there") from e
    if not classes:
        raise MissingFilesError(f"find_classes: Couldn't find any class folder in {directory}", got="none",
                                expected="one folder for each class", fix=f"{Path(directory) / 'cat'}, say")
    return classes, {name: i for i, name in enumerate(classes)}


def default_loader(path: str):
    """Return the image in a file as an RGB Pillow image."""
    try:
        with open(path, "rb") as f:
            return pillow()[0].open(f).convert("RGB")
    except (OSError, SyntaxError) as e:     # Pillow raises either for other data than images
        raise DataError(f"{path} is not an image, or is damaged", got=f"{type(e).__name__}: {e}") from e


class DatasetFolder(VisionDataset):
    """Files in one folder per class; `d[i]` is (sample, int).

    Attributes: classes, class_to_idx, samples [(path, number)], targets.

    Args:
        root: folder of the class folders.
        loader: function that reads a file.
        extensions: endings of the names of samples; default: None, use is_valid_file.
        transform: function of the image, such as transforms.ToTensor(); default: none.
        target_transform: function of the label; default: none.
        is_valid_file: function of a path that returns True for samples; default: None.
        allow_empty: accept classes without files.
    """

    root: Path

    def __init__(self, root: str | os.PathLike, loader: Callable, extensions: Sequence[str] | None = None,
                 transform: Callable | None = None, target_transform: Callable | None = None,
                 is_valid_file: Callable | None = None, allow_empty: bool = False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        if (extensions is None) == (is_valid_file is None):
            raise ArgumentError("DatasetFolder: Both extensions and is_valid_file cannot be None or not None "
                                "at the same time", expected="one of the two", got="both" if extensions
                                else "none")
        valid = is_valid_file or (lambda path: path.lower().endswith(tuple(extensions or ())))
        self.loader, self.extensions = loader, extensions
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples: list[tuple[str, int]] = []
        for name in self.classes:
            walk = sorted(os.walk(self.root / name, followlinks=True))
            paths = [os.path.join(folder, f) for folder, _, files in walk for f in sorted(files)]
            paths = [p for p in paths if valid(p)]
            if not paths and not allow_empty:
                raise MissingFilesError(f"{type(self).__name__}: Found no valid file for the classes {name}",
                                        expected="files that end in " + ", ".join(extensions) if extensions
                                        else
                                        "files that is_valid_file takes", got=f"none in {self.root / name}",
                                        fix="put some there; or allow_empty=True lets it be")
            self.samples += [(p, self.class_to_idx[name]) for p in paths]
        self.targets = [n for _, n in self.samples]

    def find_classes(self, directory) -> tuple[list[str], dict[str, int]]:
        """Return the classes; subclasses may override this."""
        return find_classes(directory)

    def __len__(self) -> int:
        return len(self.samples)

    def raw(self, index: int):
        path, target = self.samples[index]
        return self.loader(path), target


class ImageFolder(DatasetFolder):
    """Images in one folder per class, such as root/dog/1.png. It needs Pillow.

    Args:
        root: folder of the class folders.
        transform: function of the image, such as transforms.ToTensor(); default: none.
        target_transform: function of the label; default: none.
        loader: function that reads a file.
        is_valid_file: function of a path that returns True for images; default: by the ending.
        allow_empty: accept classes without files.
    """

    def __init__(self, root: str | os.PathLike, transform: Callable | None = None,
                 target_transform: Callable | None = None,
                 loader: Callable = default_loader, is_valid_file: Callable | None = None,
                 allow_empty: bool = False):
        super().__init__(root, loader, IMG_EXTENSIONS if is_valid_file is None else None, transform,
                         target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples
