"""The data pipeline: 100 pictures from an OFRecord file, decoded, resized and normalised, against Pillow by hand and
PyTorch's DataLoader. The resizing differs in a grey level or two: flowedu follows OpenCV, as OneFlow does."""
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

BATCH, COUNT, SIZE = 100, 1000, 32
MEAN, STD = 127.0, 50.0


def _by_hand(content: bytes) -> np.ndarray:
    from PIL import Image
    with Image.open(io.BytesIO(content)) as image:
        pixels = np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR), np.float32)
    return ((pixels - MEAN) / STD)[None]


class _Pictures(Dataset):
    """What DataLoader takes: one picture and its label at a time."""

    def __init__(self, contents, labels):
        self.contents, self.labels = contents, labels

    def __len__(self):
        return len(self.contents)

    def __getitem__(self, i):
        return _by_hand(self.contents[i]), self.labels[i]


def _forever(contents, labels, workers):
    loader = DataLoader(_Pictures(contents, labels), BATCH, sampler=itertools.cycle(range(COUNT)), num_workers=workers)
    return iter(loader)


def data_pipeline(workers: int):
    """A row's contenders: `workers`, the processes that PyTorch's DataLoader may use (0: none of its own)."""
    from PIL import Image
    digits = mnist.read(mnist.SUBSET)
    contents, labels = [], digits.y_train[:COUNT].astype(np.int32)
    for picture in digits.x_train[:COUNT]:
        Image.fromarray(picture).save(f := io.BytesIO(), "JPEG")
        contents.append(f.getvalue())
    folder = tempfile.TemporaryDirectory()
    with flow.data.ofrecord_writer(folder.name) as w:
        for content, label in zip(contents, labels):
            w.write({"encoded": content, "class/label": label})
    flow.clear_default_session()

    @flow.global_function()
    def job() -> tuple[tp.Numpy, tp.Numpy]:
        records = flow.data.ofrecord_reader(folder.name, BATCH)
        images = flow.data.OFRecordImageDecoder(records, "encoded", color_space="GRAY")
        images = flow.image.Resize(images, target_size=(SIZE, SIZE), channels=1)[0]
        images = flow.image.CropMirrorNormalize(images, color_space="GRAY", mean=[MEAN], std=[STD])
        return images, flow.data.OFRecordRawDecoder(records, "class/label", (), flow.int32)

    start = itertools.cycle(range(0, COUNT, BATCH))

    def by_hand():
        i = next(start)
        return np.stack([_by_hand(c) for c in contents[i:i + BATCH]]), labels[i:i + BATCH]

    found = {"flowedu": lambda _=folder: job(), "numpy": by_hand}        # the folder lives as long as the job is called
    if torch:
        found["torch"] = _forever(contents, labels, workers).__next__
    results = {name: f() for name, f in found.items()}
    for images, numbers in results.values():
        np.testing.assert_allclose(images, results["numpy"][0], atol=2.5 / STD)
        np.testing.assert_array_equal(numbers, results["numpy"][1])
    return found
