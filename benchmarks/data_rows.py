"""Rows of the data pipeline, compared with Pillow by hand and PyTorch's DataLoader.

A batch of images is read from an OFRecord file, decoded, resized, and normalized. Results differ by one or
two gray levels, and by more when images shrink, because flowedu resizes like OpenCV, as OneFlow does.
"""
from __future__ import annotations

import io
import itertools
import tempfile

import numpy as np

import flowedu as flow
import flowedu.typing as tp
from flowedu.data import mnist

try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError:
    torch, Dataset = None, object

MEAN, STD = 127.0, 50.0
BATCHES = 4         # batches of photos per call
READ_AHEAD = 0.5    # seconds until a contender has filled its read-ahead buffer and leaves the processor


def _by_hand(content: bytes, size: int) -> np.ndarray:
    from PIL import Image
    with Image.open(io.BytesIO(content)) as image:
        pixels = np.asarray(image.resize((size, size), Image.Resampling.BILINEAR), np.float32)
    return np.moveaxis(np.atleast_3d((pixels - MEAN) / STD), 2, 0)


class _Pictures(Dataset):
    """Dataset for DataLoader, with one image and its label per item."""

    def __init__(self, contents, labels, size):
        self.contents, self.labels, self.size = contents, labels, size

    def __len__(self):
        return len(self.contents)

    def __getitem__(self, i):
        return _by_hand(self.contents[i], self.size), self.labels[i]


def _digits() -> list[np.ndarray]:
    return list(mnist.read(mnist.SUBSET).x_train[:1000])


def _photos() -> list[np.ndarray]:
    """Return random 320x240 images that are as smooth as photos, with JPEG files of about the same size."""
    from PIL import Image
    rough = np.random.default_rng(0).integers(0, 256, (128, 30, 40, 3), dtype=np.uint8)
    return [np.asarray(Image.fromarray(a).resize((320, 240), Image.Resampling.BICUBIC)) for a in rough]


def data_pipeline(photos: bool = False):
    """Return the contenders of a row, with PyTorch's DataLoader without and with two worker processes.

    photos: 64 color images of 320x240, resized to 224x224, four batches per call; else 100 gray 28x28 images,
    resized to 32x32.
    """
    from PIL import Image
    pictures = _photos() if photos else _digits()
    batch, size = (64, 224) if photos else (100, 32)
    space, channels = ("RGB", 3) if photos else ("GRAY", 1)
    contents, labels = [], np.arange(len(pictures), dtype=np.int32)
    for picture in pictures:
        f = io.BytesIO()
        Image.fromarray(picture).save(f, "JPEG")
        contents.append(f.getvalue())
    folder = tempfile.TemporaryDirectory()
    with flow.data.ofrecord_writer(folder.name) as w:
        for content, label in zip(contents, labels):
            w.write({"encoded": content, "class/label": label})
    flow.clear_default_session()

    @flow.global_function()
    def job() -> tuple[tp.Numpy, tp.Numpy]:
        records = flow.data.ofrecord_reader(folder.name, batch)
        images = flow.data.OFRecordImageDecoder(records, "encoded", color_space=space)
        images = flow.image.Resize(images, target_size=(size, size), channels=channels)[0]
        images = flow.image.CropMirrorNormalize(images, color_space=space, mean=[MEAN], std=[STD])
        return images, flow.data.OFRecordRawDecoder(records, "class/label", (), flow.int32)

    start = itertools.cycle(range(0, len(pictures), batch))

    def by_hand():
        i = next(start)
        return np.stack([_by_hand(c, size) for c in contents[i:i + batch]]), labels[i:i + batch]

    found = {"flowedu": lambda _=folder: job(), "Pillow by hand": by_hand}      # keeps the folder of the job
    if torch:
        for workers in (0, 2):
            loader = DataLoader(_Pictures(contents, labels, size), batch,
                                sampler=itertools.cycle(range(len(pictures))), num_workers=workers)
            found[f"torch, {workers} workers" if workers else "torch, no workers"] = iter(loader).__next__
    results = {name: f() for name, f in found.items()}
    for images, numbers in results.values():
        np.testing.assert_allclose(images, results["Pillow by hand"][0], atol=(12 if photos else 2.5) / STD)
        np.testing.assert_array_equal(numbers, results["Pillow by hand"][1])
    # Batches that were read ahead before the clock started must not count, so the warm-up call takes more
    # than are ready.
    return {name: lambda f=f: [f() for _ in range(BATCHES)] for name, f in found.items()} if photos else found
