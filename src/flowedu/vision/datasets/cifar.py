"""CIFAR-10 and CIFAR-100: colour images of 32 x 32."""
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from flowedu.errors import DataError
from flowedu.oneflow04.data.download import sha256_of
from flowedu.vision.datasets.base import VisionDataset, picture
from flowedu.vision.datasets.files import extract, fetch_first
from flowedu.vision.datasets.pickled import read_pickled

_ELSE_USE = "SyntheticCIFAR10(), drawings, which come with flowedu"
_SERVER = "https://www.cs.toronto.edu/~kriz/"
_PIXELS = 3 * 32 * 32


class CIFAR10(VisionDataset):
    """Ten classes of things and animals: 50,000 pictures to train with, 10,000 to test.

    The files are root/cifar-10-batches-py/data_batch_1 and so on, as torchvision has them, or those of the binary version,
    root/cifar-10-batches-bin/data_batch_1.bin. The first are pickles, but nothing is unpickled: see pickled.py. An archive
    of either in root is taken apart.

    Args:
        root: the folder with cifar-10-batches-py, or with cifar-10-python.tar.gz.
        train: the training part, else the test part.
        transform, target_transform: see VisionDataset.
        download: fetch the archive if the files are not there (163 MB, with a SHA-256 check).
        source_url: where the archive is, if not at its authors'.
    Attributes: data uint8 (N, 32, 32, 3), targets (a list of int), classes, class_to_idx. `d[i]` is (picture, int).
    Raises DataError (a RuntimeError) for files that are missing or damaged.
    """

    base_folder, binary_folder = "cifar-10-batches-py", "cifar-10-batches-bin"
    archive, binary_archive = "cifar-10-python.tar.gz", "cifar-10-binary.tar.gz"
    sha256 = "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"
    train_files = [f"data_batch_{i}" for i in range(1, 6)]
    test_files = ["test_batch"]
    meta, binary_meta = ("batches.meta", "label_names"), "batches.meta.txt"
    label_key, label_bytes = "labels", 1            # in the binary version: the last of so many bytes
    class_count = 10

    def __init__(self, root: str | os.PathLike, train: bool = True, transform: Callable | None = None,
                 target_transform: Callable | None = None, download: bool = False, source_url: str | None = None):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download(source_url)
        binary = self._find()
        read, folder, end = (self._binary, self.binary_folder, ".bin") if binary else (self._pickled, self.base_folder, "")
        parts = [read(self.root / folder / (name + end)) for name in (self.train_files if train else self.test_files)]
        data = np.concatenate([p for p, _ in parts]).reshape(-1, 3, 32, 32)
        self.data = np.ascontiguousarray(data.transpose(0, 2, 3, 1))
        self.targets: list[int] = [label for _, labels in parts for label in labels]
        self.classes = self._names(self.root / folder, binary)
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    # ---- where the files are
    def _python_names(self) -> list[str]:
        return [*self.train_files, *self.test_files, self.meta[0]]

    def _binary_names(self) -> list[str]:
        return [*(f"{n}.bin" for n in (*self.train_files, *self.test_files)), self.binary_meta]

    def _lacks(self, folder: str, names: list[str]) -> list[str]:
        return [n for n in names if not (self.root / folder / n).exists()]

    def _find(self) -> bool:
        """Whether the files are the binary ones; takes an archive apart if there is only that. Raises DataError."""
        both = ((self.base_folder, self._python_names(), self.archive, False),
                (self.binary_folder, self._binary_names(), self.binary_archive, True))
        for folder, names, _, binary in both:
            if not self._lacks(folder, names):
                return binary
        for folder, names, archive, binary in both:
            if (self.root / archive).exists():
                extract(self.root / archive, names, self.root / folder)
                return binary
        folder, lacks = min(((self.root / f, self._lacks(f, names)) for f, names, _, _ in both), key=lambda f: len(f[1]))
        part = len(lacks) < len(self._python_names()) and f"the folder {folder} without {', '.join(lacks)}"
        raise DataError(f"{type(self).__name__}: Dataset not found. You can use download=True to download it",
                        expected=f"the folder {self.base_folder} or {self.binary_folder} with all files, or the file "
                        f"{self.archive}, in {self.root}", got=part or "none of them", fix="download=True; or fetch it on "
                        f"another machine from {_SERVER}{self.archive} and put it there; or without a network "
                        f"{_ELSE_USE}")

    def download(self, source_url: str | None = None) -> None:
        """Fetch the archive, unless the files or a good archive are there."""
        if not self._lacks(self.base_folder, self._python_names()) or not self._lacks(self.binary_folder,
                                                                                      self._binary_names()):
            return
        path = self.root / self.archive
        if not path.exists() or sha256_of(path) != self.sha256:
            fetch_first([source_url or _SERVER + self.archive], path, self.sha256, _ELSE_USE)

    # ---- what is in them
    def _pickled(self, path: Path) -> tuple[np.ndarray, list[int]]:
        found = read_pickled(path)
        return self._checked(path, found.get("data"), found.get(self.label_key))

    def _binary(self, path: Path) -> tuple[np.ndarray, list[int]]:
        rows = np.fromfile(path, np.uint8)
        width = self.label_bytes + _PIXELS
        if not rows.size or rows.size % width:
            raise DataError(f"{path} is damaged", expected=f"a multiple of {width:,} bytes", got=f"{rows.size:,} bytes",
                            fix=f"remove it and put {self.binary_archive} into {self.root}")
        rows = rows.reshape(-1, width)
        return self._checked(path, rows[:, self.label_bytes:], rows[:, self.label_bytes - 1].tolist())

    def _checked(self, path: Path, data, labels) -> tuple[np.ndarray, list[int]]:
        good = isinstance(data, np.ndarray) and data.dtype == np.uint8 and data.shape[1:] == (_PIXELS,) and isinstance(
            labels, list) and len(labels) == len(data)
        if not good or not all(type(n) is int and 0 <= n < self.class_count for n in labels):
            raise DataError(f"{path} does not hold what {type(self).__name__} has", expected=f"data uint8 (N, {_PIXELS}), "
                            f"{self.label_key}: N numbers of 0 to {self.class_count - 1}", fix="remove it; download=True",
                            got=f"data {getattr(data, 'dtype', None)} {getattr(data, 'shape', None)}, {self.label_key} "
                                f"{type(labels).__name__}")
        return data, labels

    def _names(self, folder: Path, binary: bool) -> list[str]:
        if binary:
            names = (folder / self.binary_meta).read_text("ascii", "replace").split()
        else:
            names = [n.decode("ascii", "replace") for n in read_pickled(folder / self.meta[0]).get(self.meta[1], [])]
        if len(names) != self.class_count:
            raise DataError(f"{type(self).__name__}: the list of classes in {folder} is damaged", got=f"{len(names)} names",
                            expected=f"{self.class_count} names", fix="remove the folder; download=True")
        return names

    def __len__(self) -> int:
        return len(self.data)

    def raw(self, index: int):
        return picture(self.data[index]), int(self.targets[index])

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"


class CIFAR100(CIFAR10):
    """A hundred classes, else as CIFAR10; in root/cifar-100-python or root/cifar-100-binary."""

    base_folder, binary_folder = "cifar-100-python", "cifar-100-binary"
    archive, binary_archive = "cifar-100-python.tar.gz", "cifar-100-binary.tar.gz"
    sha256 = "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"
    train_files, test_files = ["train"], ["test"]
    meta, binary_meta = ("meta", "fine_label_names"), "fine_label_names.txt"
    label_key, label_bytes = "fine_labels", 2       # the first of the two is the coarse label
    class_count = 100
