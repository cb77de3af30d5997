"""CIFAR-10 and CIFAR-100: color images of 32 x 32 pixels."""
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from flowedu.errors import DataError
from flowedu.utils.download import sha256_of
from flowedu.vision.datasets.base import VisionDataset, picture
from flowedu.vision.datasets.files import extract, fetch_first
from flowedu.vision.datasets.pickled import read_pickled

_ELSE_USE = "SyntheticCIFAR10(), drawings, which come with flowedu"
_SERVER = "https://www.cs.toronto.edu/~kriz/"
_PIXELS = 3 * 32 * 32


class CIFAR10(VisionDataset):
    """CIFAR-10: 50,000 training and 10,000 test images of ten classes of objects and animals.

    The files are root/cifar-10-batches-py/data_batch_1 and so on, as in torchvision, or those of the binary
    version, root/cifar-10-batches-bin/data_batch_1.bin. A safe reader parses the pickle files of the first
    version without executing them (pickled.py). An archive of either version in root is extracted. `d[i]` is
    (image, int). Attributes: data, a uint8 array (N, 32, 32, 3); targets, a list of int; classes;
    class_to_idx.

    Args:
        root: folder that contains cifar-10-batches-py or cifar-10-python.tar.gz.
        train: True for the training part, False for the test part.
        transform: function of the image, such as transforms.ToTensor(); default: none.
        target_transform: function of the label; default: none.
        download: download the archive if the files are missing (163 MB, with a SHA-256 check).
        source_url: URL of the archive; default: that of its authors.

    Raises:
        DataError (a RuntimeError): files are missing or damaged.
    """

    root: Path
    base_folder, binary_folder = "cifar-10-batches-py", "cifar-10-batches-bin"
    archive, binary_archive = "cifar-10-python.tar.gz", "cifar-10-binary.tar.gz"
    sha256 = "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"
    train_files = [f"data_batch_{i}" for i in range(1, 6)]
    test_files = ["test_batch"]
    meta, binary_meta = ("batches.meta", "label_names"), "batches.meta.txt"
    label_key, label_bytes = "labels", 1            # label bytes of the binary version; the last is used
    class_count = 10

    def __init__(self, root: str | os.PathLike, train: bool = True, transform: Callable | None = None,
                 target_transform: Callable | None = None, download: bool = False,
                 source_url: str | None = None):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download(source_url)
        binary = self._find()
        read, folder, end = self._read_pickle, self.base_folder, ""
        if binary:
            read, folder, end = self._read_binary, self.binary_folder, ".bin"
        parts = [read(self.root / folder / (name + end)) for name in (self.train_files if train
                                                                      else self.test_files)]
        data = np.concatenate([p for p, _ in parts]).reshape(-1, 3, 32, 32)
        self.data = np.ascontiguousarray(data.transpose(0, 2, 3, 1))
        self.targets: list[int] = [label for _, labels in parts for label in labels]
        self.classes = self._names(self.root / folder, binary)
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    # ---- file locations
    def _python_names(self) -> list[str]:
        return [*self.train_files, *self.test_files, self.meta[0]]

    def _binary_names(self) -> list[str]:
        return [*(f"{n}.bin" for n in (*self.train_files, *self.test_files)), self.binary_meta]

    def _lacks(self, folder: str, names: list[str]) -> list[str]:
        return [n for n in names if not (self.root / folder / n).exists()]

    def _find(self) -> bool:
        """Return True if the binary files exist; extract an archive if only that exists. Raises DataError."""
        both = ((self.base_folder, self._python_names(), self.archive, False),
                (self.binary_folder, self._binary_names(), self.binary_archive, True))
        for folder, names, _, binary in both:
            if not self._lacks(folder, names):
                return binary
        for folder, names, archive, binary in both:
            if (self.root / archive).exists():
                extract(self.root / archive, names, self.root / folder)
                return binary
        path, lacks = min(((self.root / f, self._lacks(f, names)) for f, names, _, _ in both),
                          key=lambda f: len(f[1]))
        part = len(lacks) < len(self._python_names()) and f"the folder {path} without {', '.join(lacks)}"
        raise DataError(f"{type(self).__name__}: Dataset not found. You can use download=True to download it",
                        expected=f"the folder {self.base_folder} or {self.binary_folder} with all files, or "
                        f"the file {self.archive}, in {self.root}", got=part or "none of them",
                        fix="download=True; or fetch it on "
                        f"another machine from {_SERVER}{self.archive} and put it there; or without a "
                        f"network {_ELSE_USE}")

    def download(self, source_url: str | None = None) -> None:
        """Download the archive, unless the files or a valid archive exist."""
        if not self._lacks(self.base_folder, self._python_names()) or not self._lacks(self.binary_folder,
                                                                                      self._binary_names()):
            return
        path = self.root / self.archive
        if not path.exists() or sha256_of(path) != self.sha256:
            fetch_first([source_url or _SERVER + self.archive], path, self.sha256, _ELSE_USE)

    # ---- file contents
    def _read_pickle(self, path: Path) -> tuple[np.ndarray, list[int]]:
        contents = read_pickled(path)
        return self._check(path, contents.get("data"), contents.get(self.label_key))

    def _read_binary(self, path: Path) -> tuple[np.ndarray, list[int]]:
        rows = np.fromfile(path, np.uint8)
        width = self.label_bytes + _PIXELS
        if not rows.size or rows.size % width:
            raise DataError(f"{path} is damaged", expected=f"a multiple of {width:,} bytes",
                            got=f"{rows.size:,} bytes",
                            fix=f"remove it and put {self.binary_archive} into {self.root}")
        rows = rows.reshape(-1, width)
        return self._check(path, rows[:, self.label_bytes:], rows[:, self.label_bytes - 1].tolist())

    def _check(self, path: Path, data, labels) -> tuple[np.ndarray, list[int]]:
        good = (isinstance(data, np.ndarray) and data.dtype == np.uint8 and data.shape[1:] == (_PIXELS,)
                and isinstance(labels, list) and len(labels) == len(data))
        if not good or not all(type(n) is int and 0 <= n < self.class_count for n in labels):
            raise DataError(f"{path} does not hold what {type(self).__name__} has",
                            expected=f"data uint8 (N, {_PIXELS}), {self.label_key}: N numbers of 0 to "
                            f"{self.class_count - 1}", fix="remove it; download=True",
                            got=f"data {getattr(data, 'dtype', None)} {getattr(data, 'shape', None)}, "
                            f"{self.label_key} {type(labels).__name__}")
        return data, labels

    def _names(self, folder: Path, binary: bool) -> list[str]:
        if binary:
            names = (folder / self.binary_meta).read_text("ascii", "replace").split()
        else:
            names = [n.decode("ascii", "replace")
                     for n in read_pickled(folder / self.meta[0]).get(self.meta[1], [])]
        if len(names) != self.class_count:
            raise DataError(f"{type(self).__name__}: the list of classes in {folder} is damaged",
                            got=f"{len(names)} names",
                            expected=f"{self.class_count} names", fix="remove the folder; download=True")
        return names

    def __len__(self) -> int:
        return len(self.data)

    def raw(self, index: int):
        return picture(self.data[index]), int(self.targets[index])

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"


class CIFAR100(CIFAR10):
    """CIFAR-100, with a hundred classes; see CIFAR10.

    The files are in root/cifar-100-python or root/cifar-100-binary.

    Args:
        root: folder that contains cifar-100-python or its archive.
        train: True for the training part, False for the test part.
        transform: function of the image, such as transforms.ToTensor(); default: none.
        target_transform: function of the label; default: none.
        download: download the archive if the files are missing.
        source_url: URL of the archive; default: that of its authors.
    """

    base_folder, binary_folder = "cifar-100-python", "cifar-100-binary"
    archive, binary_archive = "cifar-100-python.tar.gz", "cifar-100-binary.tar.gz"
    sha256 = "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"
    train_files, test_files = ["train"], ["test"]
    meta, binary_meta = ("meta", "fine_label_names"), "fine_label_names.txt"
    label_key, label_bytes = "fine_labels", 2       # the first of the two is the coarse label
    class_count = 100
