"""MNIST, FashionMNIST, and KMNIST: gray images of 28 x 28 pixels."""
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from flowedu.errors import DataError
from flowedu.oneflow04.data import mnist as packed
from flowedu.tensor import from_numpy
from flowedu.vision.datasets.base import VisionDataset, picture
from flowedu.vision.datasets.files import fetch_first
from flowedu.vision.datasets.idx import read_idx

_IMAGES, _LABELS = "{}-images-idx3-ubyte", "{}-labels-idx1-ubyte"


class MNIST(VisionDataset):
    """MNIST: 60,000 training and 10,000 test images of handwritten digits.

    The files are root/MNIST/raw/train-images-idx3-ubyte.gz and so on, compressed or not, as in torchvision.
    `d[i]` is (image, int). Attributes: data, a uint8 tensor (N, 28, 28); targets, an int64 tensor (N,);
    classes.

    Args:
        root: folder that contains MNIST/raw.
        train: True for the training part, False for the test part.
        transform: function of the image, such as transforms.ToTensor(); default: none.
        target_transform: function of the label; default: none.
        download: download missing files (with a SHA-256 check).
        source_url: URL of the folder of the files; default: the known servers.

    Raises:
        DataError (a RuntimeError): files are missing or damaged.
    """

    root: Path
    mirrors: tuple[str, ...] = ("https://ossci-datasets.s3.amazonaws.com/mnist/",
                                "https://storage.googleapis.com/cvdf-datasets/mnist/")
    sha256 = {
        "train-images-idx3-ubyte": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    }
    classes = ["0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six", "7 - seven",
               "8 - eight", "9 - nine"]
    else_use = "MNISTSubset(), 7,000 of the digits, which come with flowedu"

    def __init__(self, root: str | os.PathLike, train: bool = True, transform: Callable | None = None,
                 target_transform: Callable | None = None, download: bool = False,
                 source_url: str | None = None):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download(source_url)
        part = "train" if train else "t10k"
        images, labels = (read_idx(self._path(name.format(part))) for name in (_IMAGES, _LABELS))
        if images.ndim != 3 or images.dtype != np.uint8 or labels.shape != images.shape[:1]:
            raise DataError(f"{type(self).__name__}: the files in {self.raw_folder} do not belong together",
                            expected="images uint8 (N, rows, columns), labels (N,)",
                            fix="remove them; download=True",
                            got=f"images {images.dtype} {images.shape}, labels {labels.dtype} {labels.shape}")
        self._keep(images, labels)

    def _keep(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.data, self.targets = from_numpy(images), from_numpy(labels.astype(np.int64))

    @property
    def raw_folder(self) -> Path:
        return self.root / type(self).__name__ / "raw"

    @property
    def class_to_idx(self) -> dict[str, int]:
        return {c: i for i, c in enumerate(self.classes)}

    def _find(self, name: str) -> Path | None:
        candidates = (p for p in (self.raw_folder / name, self.raw_folder / f"{name}.gz") if p.exists())
        return next(candidates, None)

    def _path(self, name: str) -> Path:
        path = self._find(name)
        if path is None:
            fetch = "download=True" if self.mirrors else "fetch the four files by hand"
            raise DataError(f"{type(self).__name__}: Dataset not found",
                            expected=f"{name}.gz in {self.raw_folder}",
                            got=f"neither that nor {name}",
                            fix=f"{fetch}; or without a network {self.else_use}")
        return path

    def download(self, source_url: str | None = None) -> None:
        """Download the missing files."""
        folders = self.mirrors if source_url is None else (source_url.rstrip("/") + "/",)
        for name, sha256 in self.sha256.items():
            if self._find(name) is None:
                fetch_first((f"{m}{name}.gz" for m in folders), self.raw_folder / f"{name}.gz", sha256,
                            self.else_use)

    def __len__(self) -> int:
        return len(self.data)

    def raw(self, index: int):
        return picture(self.data.numpy()[index]), int(self.targets.numpy()[index])

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"


class FashionMNIST(MNIST):
    """Images of clothes in MNIST's format, in root/FashionMNIST/raw.

    Args:
        root: folder that contains FashionMNIST/raw.
        train: True for the training part, False for the test part.
        transform: function of the image, such as transforms.ToTensor(); default: none.
        target_transform: function of the label; default: none.
        download: download missing files.
        source_url: URL of the folder of the files; default: the known servers.
    """

    mirrors = ("https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
               "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/")
    sha256 = {
        "train-images-idx3-ubyte": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1-ubyte": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3-ubyte": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1-ubyte": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    }
    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
               "Ankle boot"]
    else_use = "MNISTSubset(), digits, or SyntheticCIFAR10(), which come with flowedu"


class KMNIST(MNIST):
    """Old Japanese characters in MNIST's format, in root/KMNIST/raw. They cannot be downloaded.

    Args:
        root: folder that contains KMNIST/raw.
        train: True for the training part, False for the test part.
        transform: function of the image, such as transforms.ToTensor(); default: none.
        target_transform: function of the label; default: none.
        download: not supported.
        source_url: URL of the folder of the files; default: None.
    """

    mirrors, sha256 = (), {}
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


class MNISTSubset(MNIST):
    """Subset of MNIST that is installed with flowedu: 6,000 training and 1,000 test images.

    Args:
        train: True for the training part, False for the test part.
        transform: function of the image, such as transforms.ToTensor(); default: none.
        target_transform: function of the label; default: none.
    """

    def __init__(self, train: bool = True, transform: Callable | None = None,
                 target_transform: Callable | None = None):
        VisionDataset.__init__(self, transform=transform, target_transform=target_transform)
        self.train = train
        digits = packed.read(packed.SUBSET)
        self._keep(*((digits.x_train, digits.y_train) if train else (digits.x_test, digits.y_test)))
