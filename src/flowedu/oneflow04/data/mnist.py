"""MNIST: 28x28 grey images of handwritten digits, the "hello world" of deep learning.

`load_mnist` looks for the file in `out_dir`, then in the user's cache. If neither has it, a small subset of
the real images is used, so that everything works without a network. The subset is part of the package (see
mnist_subset.md for its licence).
"""
from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flowedu.errors import ArgumentError, DataError
from flowedu.utils.download import cache_dir, fetch, sha256_of

FILE = "mnist.npz"
SUBSET = Path(__file__).with_name("mnist_subset.npz")
KEYS = ("x_train", "y_train", "x_test", "y_test")

# Two servers with the same 70,000 images in different archives.
URL = "https://oneflow-public.oss-cn-beijing.aliyuncs.com/datasets/mnist.npz"
SHA256 = "63d4344077849053dc3036b247fa012b2b381de53fd055a66b539dffd76cf08e"
MIRRORS = ((URL, SHA256),
           ("https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
            "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"))
# SHA-256 over the pixels and labels themselves: the same for every packing of the full set.
CONTENT = "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16"


class Digits(NamedTuple):
    """The four arrays of a file: images uint8 (N, 28, 28) and labels (N,)."""
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


def load_mnist(train_batch_size=100, test_batch_size=100, data_format="NCHW", url=URL, hash_check=SHA256,
               out_dir="."):
    """Return MNIST in batches, without shuffling.

    The file is `out_dir/mnist.npz`, else the file in the user's cache, else the subset inside the package
    (6,000 and 1,000 images). A file is downloaded only if you pass another `url` than the default.

    Args:
        train_batch_size: the batch size of the training images, which divides their number.
        test_batch_size: the batch size of the test images, which divides their number.
        data_format: "NCHW" returns images (1, 28, 28), any other value (28, 28, 1).
        url: an address from which the file is downloaded into `out_dir`.
        hash_check: the SHA-256 of the file. The default accepts each archive of the true MNIST; None accepts
            any file with the arrays x_train, y_train, x_test, and y_test.
        out_dir: the folder of the file.

    Returns: ((train_images, train_labels), (test_images, test_labels)). Images are float32 in 0..1 of shape
    (batches, batch size, 1, 28, 28) or (batches, batch size, 28, 28, 1); labels are int32 of shape (batches,
    batch size).
    """
    path = find(out_dir)
    if path is None and url != URL:
        expected = dict(MIRRORS).get(url, hash_check) if hash_check == SHA256 else hash_check
        path = str(fetch(url, os.path.join(out_dir, FILE), expected))
    if path is None:
        digits = read(SUBSET)
        print(f"MNIST: using the built-in subset ({len(digits.x_train):,} training and "
              f"{len(digits.x_test):,} test images); for the full set run: python -m flowedu.data mnist")
    else:
        print(f"File {FILE} already exist, path: {path}")
        digits = read(path, hash_check)
    of_subset = path is None
    train = _batches("train", digits.x_train, digits.y_train, train_batch_size, data_format, of_subset)
    test = _batches("test", digits.x_test, digits.y_test, test_batch_size, data_format, of_subset)
    return train, test


def find(out_dir: str | os.PathLike = ".") -> str | None:
    """Return the path of the first mnist.npz in `out_dir` or the user's cache, or None."""
    for folder in (out_dir, cache_dir()):
        path = os.path.join(folder, FILE)
        if os.path.exists(path):
            return path
    return None


def read(path: str | os.PathLike, hash_check: str | None = None) -> Digits:
    """Return the arrays of a mnist.npz.

    Raise DataError if the file is damaged, has another format, or has another hash than `hash_check`.

    Pickled objects are refused, so that a file from an untrusted source cannot run code.
    """
    if hash_check is not None:
        _verify(path, hash_check)
    return _read_npz(path)


def _verify(path, hash_check: str) -> None:
    try:
        got = sha256_of(path)
    except OSError as e:
        raise DataError(f"load_mnist: cannot read {path}", got=str(e),
                        fix="check the path and its permissions") from e
    if got == hash_check.lower():
        return
    if hash_check == SHA256:
        # The default accepts each archive of MNIST; another archive has another hash and the same digits.
        try:
            import hashlib
            content = hashlib.sha256()
            for array in _read_npz(path):
                content.update(np.ascontiguousarray(array).data)
            if content.hexdigest() == CONTENT:
                return
        except DataError:
            pass                            # damaged: the error below reports the hash
    raise DataError(f"load_mnist: sha256 verification failed, remove {path} and try again",
                    expected=hash_check, got=got,
                    fix="a damaged or different file: remove it, or pass hash_check=None if you trust it")


def _read_npz(path) -> Digits:
    import zipfile
    import zlib
    remove = f"remove {path} and fetch it again: python -m flowedu.data mnist"
    try:
        f = np.load(path, allow_pickle=False)
        if not isinstance(f, np.lib.npyio.NpzFile):     # a plain .npy under this name
            raise DataError(f"load_mnist: {path} holds one array",
                            expected=f"an npz file with {', '.join(KEYS)}", fix=remove)
        with f:
            missing = [k for k in KEYS if k not in f.files]
            if missing:
                raise DataError(f"load_mnist: {path} has no array {', '.join(missing)}",
                                expected=", ".join(KEYS), got=", ".join(f.files) or "nothing", fix=remove)
            digits = Digits(*(f[k] for k in KEYS))
    except (OSError, ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile,
            zlib.error) as e:
        raise DataError(f"load_mnist: {path} is damaged", got=f"{type(e).__name__}: {e}", fix=remove) from e
    # NumPy hands other members out as bytes
    if not all(isinstance(array, np.ndarray) for array in digits):
        raise DataError(f"load_mnist: {path} holds something other than arrays", fix=remove)
    for x, y in (digits[:2], digits[2:]):
        if x.ndim != 3 or x.dtype != np.uint8 or y.shape != x.shape[:1] or y.dtype.kind not in "iu":
            raise DataError(f"load_mnist: {path} does not hold MNIST's layout",
                            expected="images uint8 (N, rows, columns), labels of an integer type (N,)",
                            got=f"images {x.dtype} {x.shape}, labels {y.dtype} {y.shape}", fix=remove)
    return digits


def _batches(part: str, x: np.ndarray, y: np.ndarray, size: int, data_format: str, of_subset: bool):
    _check_batch_size(part, len(x), size, of_subset)
    rows, columns = x.shape[1:]
    channel = (1, rows, columns) if data_format == "NCHW" else (rows, columns, 1)
    images = x.astype(np.float32)
    images /= 255.0
    return images.reshape((-1, size, *channel)), y.astype(np.int32).reshape((-1, size))


def _check_batch_size(part: str, n: int, size: int, of_subset: bool) -> None:
    name = f"{part}_batch_size"
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
        raise ArgumentError(f"load_mnist: {name} is not an integer", expected="a positive integer",
                            got=repr(size))
    works = [d for d in range(1, n + 1) if n % d == 0]
    if size in works:
        return
    near = [str(d) for d in ([d for d in works if d < size][-1:] + [d for d in works if d > size][:1])]
    full = {"train": 60000, "test": 10000}[part]
    fix = f"{name}={' or '.join(near)}"
    if of_subset and size > 0 and full % size == 0:
        fix += f"; or get the full set, which has {full:,} images: python -m flowedu.data mnist"
    raise ArgumentError(f"load_mnist: {name}={size} does not divide the {n:,} {part} images",
                        expected=f"one of {', '.join(map(str, works))}", got=str(size), fix=fix)
