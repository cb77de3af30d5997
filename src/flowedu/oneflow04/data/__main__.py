"""Command `python -m flowedu.data`: list the data sets and where they were found.

`... mnist` fetches the full MNIST; `... ofrecord DIR` writes MNIST as OFRecord files.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from flowedu.errors import ArgumentError, DataError
from flowedu.oneflow04.data import mnist
from flowedu.oneflow04.data.ofrecord import ofrecord_writer
from flowedu.utils.download import cache_dir, fetch


def show() -> None:
    """Print one line for each data set."""
    path = mnist.find(".")
    where = path or "built-in subset, 6,000 + 1,000 images (the full set: python -m flowedu.data mnist)"
    print(f"{'data set':<10}what it is, and where it was found")
    print(f"{'mnist':<10}handwritten digits, 28x28, 60,000 + 10,000 images: {where}")
    print(f"Fetched files are kept in {cache_dir()} (FLOWEDU_CACHE chooses another folder).")


def get_mnist(out_dir: str | None, url: str | None, sha256: str | None) -> None:
    """Fetch the full set into `out_dir` or the cache; keep an existing file that is valid."""
    path = Path(out_dir) / mnist.FILE if out_dir else cache_dir() / mnist.FILE
    check = None if sha256 == "none" else sha256
    if path.exists():
        mnist.read(path, check if sha256 else mnist.SHA256)
        print(f"{path} is already there and is good.")
        return
    # For a url of the user, the hash is known only if the user gives it.
    if url:
        sources = [(url, check)]
    else:
        sources = [(mirror, check if sha256 else known) for mirror, known in mnist.MIRRORS]
    for i, (source, expected) in enumerate(sources):
        print(f"{source} -> {path}")
        try:
            fetch(source, path, expected)
            break
        except DataError as e:
            if i + 1 == len(sources):
                raise
            print(f"{e.problem} ({e.got}); trying the next server", file=sys.stderr)
    digits = mnist.read(path)
    print(f"MNIST: {len(digits.x_train):,} training and {len(digits.x_test):,} test images.")
    if out_dir is None:
        print("flow.data.load_mnist() finds it from now on.")
    else:
        print(f"Use it with flow.data.load_mnist(out_dir={out_dir!r}).")


def write_ofrecord(out_dir: str, parts: int) -> None:
    """Write MNIST as OFRecords with the features "images" (784 bytes) and "labels" (one int32)."""
    digits = mnist.read(mnist.find(".") or mnist.SUBSET)
    for part, images, labels in (("train", digits.x_train, digits.y_train),
                                 ("test", digits.x_test, digits.y_test)):
        with ofrecord_writer(Path(out_dir) / part, parts) as w:
            for image, label in zip(images, labels.astype(np.int32)):
                w.write({"images": image.tobytes(), "labels": label})
        print(f"{Path(out_dir) / part}: {w.count:,} records in {parts} part{'s' * (parts > 1)}")
    folder = str(Path(out_dir) / "train")
    print(f"""Read them with
    records = flow.data.ofrecord_reader({folder!r}, batch_size=100, data_part_num={parts})
    images = flow.data.OFRecordRawDecoder(records, "images", (1, 28, 28), flow.float32)    # 0 to 255
    labels = flow.data.OFRecordRawDecoder(records, "labels", (), flow.int32)""")


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m flowedu.data", description=__doc__)
    sets = parser.add_subparsers(dest="dataset", metavar="DATASET")
    p = sets.add_parser("mnist", help="handwritten digits: fetch the full set (11 MB)",
                        description="Fetch the full MNIST (11 MB) with a SHA-256 check.")
    p.add_argument("--out-dir", metavar="DIR",
                   help=f"where to put {mnist.FILE} (default: the cache, {cache_dir()})")
    p.add_argument("--url", help="fetch from here (default: the known servers, one after the other)")
    p.add_argument("--sha256", metavar="HASH", help="what the file must hash to; 'none' skips the check")
    p = sets.add_parser("ofrecord", help="write MNIST as OFRecord files",
                        description="Write MNIST as OFRecord files, in DIR/train and DIR/test.")
    p.add_argument("out_dir", metavar="DIR")
    p.add_argument("--parts", type=int, default=1, help="files for each of the two (default: 1)")
    args = parser.parse_args(argv)
    try:
        if args.dataset is None:
            show()
        elif args.dataset == "ofrecord":
            write_ofrecord(args.out_dir, args.parts)
        else:
            get_mnist(args.out_dir, args.url, args.sha256)
    except (ArgumentError, DataError) as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; nothing was kept", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
