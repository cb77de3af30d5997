"""Stand-in for the parts of torchvision that programs/torch_*.py use, for a PyTorch without it: files in
torchvision's formats with random images.
"""
import gzip
import pathlib
import pickle
import sys
import types

import numpy as np
import torch


class MNIST(torch.utils.data.Dataset):
    def __init__(self, root, train=True, transform=None, download=False):
        part, self.transform = "train" if train else "t10k", transform
        raw = [gzip.decompress(next(pathlib.Path(root, "MNIST", "raw").glob(f"{part}-{kind}*")).read_bytes())
               for kind in ("images", "labels")]
        self.x = np.frombuffer(raw[0], np.uint8, offset=16).reshape(-1, *np.frombuffer(raw[0], ">u4", 2, 8))
        self.y = np.frombuffer(raw[1], np.uint8, offset=8).astype(int)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.transform(self.x[i]), int(self.y[i])


class CIFAR10(MNIST):
    def __init__(self, root, train=True, transform=None, download=False):
        names, self.transform = ([f"data_batch_{i}" for i in range(1, 6)] if train else ["test_batch"],
                                 transform)
        found = [pickle.loads(pathlib.Path(root, "cifar-10-batches-py", n).read_bytes(), encoding="latin1")
                 for n in names]
        self.x = np.concatenate([d["data"] for d in found]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self.y = np.concatenate([d["labels"] for d in found])


class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, x):
        for f in self.steps:
            x = f(x)
        return x


class ToTensor:
    def __call__(self, a):
        a = a[:, :, None] if a.ndim == 2 else a
        return torch.from_numpy(np.ascontiguousarray(a.transpose(2, 0, 1))).float() / 255


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = (torch.tensor(v)[:, None, None] for v in (mean, std))

    def __call__(self, x):
        return (x - self.mean) / self.std


def save_image(x, path, **options):
    pathlib.Path(path).touch()


def make_grid(x, padding=2, **options):
    return torch.zeros(3, x.shape[2] + 2 * padding, len(x) * (x.shape[3] + padding) + padding)


for name, names in {"datasets": (MNIST, CIFAR10), "transforms": (Compose, ToTensor, Normalize),
                    "utils": (save_image, make_grid)}.items():
    module = types.ModuleType(f"torchvision.{name}")
    vars(module).update({x.__name__: x for x in names})
    sys.modules[module.__name__] = globals()[name] = module
