"""Write the subset of MNIST in the package: `python tools/make_mnist_subset.py path/to/mnist.npz`.

The choice is deterministic: 600 training and 100 test images of every digit, equally spaced in the file. (The
two halves of MNIST's test set come from different writers, so its first 1,000 images would not be a fair
sample.) The images keep the order of the file, in which digits are mixed, so batches are mixed as well.
"""
from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np

TARGET = Path(__file__).parents[1] / "src/flowedu/oneflow04/data/mnist_subset.npz"
PER_DIGIT = {"train": 600, "test": 100}


def choose(labels: np.ndarray, per_digit: int) -> np.ndarray:
    """Return the indices of `per_digit` equally spaced images of every digit, in ascending order."""
    chosen = []
    for digit in range(10):
        where = np.flatnonzero(labels == digit)
        chosen.append(where[np.arange(per_digit) * len(where) // per_digit])
    return np.sort(np.concatenate(chosen))


def cut(source: str | Path) -> dict[str, np.ndarray]:
    out = {}
    with np.load(source, allow_pickle=False) as f:
        for part, per_digit in PER_DIGIT.items():
            rows = choose(f[f"y_{part}"], per_digit)
            out[f"x_{part}"], out[f"y_{part}"] = f[f"x_{part}"][rows], f[f"y_{part}"][rows]
    return out


def content_hash(arrays: dict[str, np.ndarray]) -> str:
    """Return the SHA-256 of pixels and labels. A hash of the file would depend on the version of zlib."""
    digest = hashlib.sha256()
    for key in ("x_train", "y_train", "x_test", "y_test"):
        digest.update(np.ascontiguousarray(arrays[key]))
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="the full mnist.npz (python -m flowedu.data mnist)")
    parser.add_argument("--out", default=TARGET, type=Path, help="default: the package's own copy")
    args = parser.parse_args()
    arrays = cut(args.source)
    np.savez_compressed(args.out, **arrays)
    print(f"{args.out}: {args.out.stat().st_size / 1e6:.2f} MB, content {content_hash(arrays)}")


if __name__ == "__main__":
    main()
