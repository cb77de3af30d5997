"""Writers of dataset files that reproduce the original formats byte for byte."""
import gzip
import io
import struct
import tarfile

import numpy as np

CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck".split()


class Python2Pickle:
    """Writer of Python 2 cPickle streams (protocol 2) for CIFAR's dictionaries. The files batches.meta and
    meta that it writes equal the originals; a test compares their MD5.
    """

    def __init__(self):
        self.count = 0

    def put(self) -> bytes:
        self.count += 1
        return b"q" + bytes([self.count]) if self.count < 256 else b"r" + struct.pack("<I", self.count)

    def value(self, v) -> bytes:
        if isinstance(v, bytes):
            short = len(v) < 256
            return (b"U" + bytes([len(v)]) if short else b"T" + struct.pack("<i", len(v))) + v + self.put()
        if isinstance(v, str):
            return self.value(v.encode())
        if isinstance(v, int):
            return b"K" + bytes([v]) if 0 <= v < 256 else b"M" + struct.pack("<H", v) if 0 <= v < 65536 else \
                b"J" + struct.pack("<i", v)
        if isinstance(v, list):
            head = b"]" + self.put()
            parts = [b"(" + b"".join(self.value(x) for x in v[i:i + 1000]) + b"e"
                     for i in range(0, len(v), 1000)]
            return head + b"".join(parts)
        assert isinstance(v, np.ndarray) and v.dtype == np.uint8
        out = b"cnumpy.core.multiarray\n_reconstruct\n" + self.put() + b"cnumpy\nndarray\n" + self.put()
        out += b"K\x00\x85" + self.value(b"b") + b"\x87" + self.put() + b"R" + self.put()
        out += b"(K\x01" + b"".join(self.value(n) for n in v.shape) + {1: b"\x85",
                                                                       2: b"\x86"}[v.ndim] + self.put()
        out += b"cnumpy\ndtype\n" + self.put() + self.value(
            b"u1") + b"K\x00K\x01\x87" + self.put() + b"R" + self.put()
        out += b"(K\x03" + self.value(
            b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t" + self.put() + b"b\x89"
        return out + self.value(v.tobytes()) + b"t" + self.put() + b"b"

    def dump(self, d: dict) -> bytes:
        out = b"\x80\x02}" + self.put() + b"("
        return out + b"".join(self.value(k) + self.value(v) for k, v in d.items()) + b"u."


def pickled(d: dict) -> bytes:
    return Python2Pickle().dump(d)


def cifar_batch(rng, n: int, classes: int = 10):
    """Return (pixels (n, 3072) uint8, labels): noise whose brightness grows with the label, so that a network
    can learn it.
    """
    noise, labels = rng.integers(0, 129, (n, 3072), np.uint8), rng.integers(0, classes, n)
    return noise + (labels * 127 // (classes - 1)).astype(np.uint8)[:, None], labels.tolist()


def cifar10_python(seed: int = 0, n: int = 4) -> dict[str, bytes]:
    """Return {file name: bytes} of cifar-10-batches-py with n images per file."""
    rng = np.random.default_rng(seed)
    out = {"batches.meta": pickled({"num_cases_per_batch": 10000, "label_names": CIFAR10, "num_vis": 3072})}
    for i, name in enumerate([f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]):
        data, labels = cifar_batch(rng, n)
        out[name] = pickled({"batch_label": f"training batch {i + 1} of 5", "labels": labels, "data": data,
                             "filenames": [f"picture_{k}.png" for k in range(n)]})
    return out


def cifar10_binary(seed: int = 0, n: int = 4) -> dict[str, bytes]:
    """Return the images of cifar10_python in the binary version."""
    rng = np.random.default_rng(seed)
    out = {"batches.meta.txt": "\n".join(CIFAR10).encode() + b"\n\n"}
    for name in [f"data_batch_{k}.bin" for k in range(1, 6)] + ["test_batch.bin"]:
        data, labels = cifar_batch(rng, n)
        out[name] = b"".join(bytes([y]) + x.tobytes() for x, y in zip(data, labels))
    return out


def cifar100(seed: int = 0, n: int = 6):
    """Return (files of the Python version, files of the binary version) of the same images."""
    rng = np.random.default_rng(seed)
    fine, coarse = [f"fine_{i}" for i in range(100)], [f"coarse_{i}" for i in range(20)]
    python = {"meta": pickled({"fine_label_names": fine, "coarse_label_names": coarse})}
    binary = {"fine_label_names.txt": "\n".join(fine).encode(),
              "coarse_label_names.txt": "\n".join(coarse).encode()}
    for name in ("train", "test"):
        data, labels = cifar_batch(rng, n, 100)
        python[name] = pickled({"filenames": ["x.png"] * n, "batch_label": "training batch 1 of 1",
                                "fine_labels": labels,
                                "coarse_labels": [y // 5 for y in labels], "data": data})
        binary[f"{name}.bin"] = b"".join(bytes([y // 5, y]) + x.tobytes() for x, y in zip(data, labels))
    return python, binary


def tar_gz(folder: str, files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def write_files(folder, files: dict[str, bytes]):
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def idx(a: np.ndarray) -> bytes:
    code = {"u1": 8, "i1": 9, "i2": 0xB, "i4": 0xC, "f4": 0xD, "f8": 0xE}[a.dtype.str[1:]]
    head = bytes([0, 0, code, a.ndim]) + struct.pack(f">{a.ndim}I", *a.shape)
    return head + a.astype(a.dtype.newbyteorder(">")).tobytes()


def mnist(seed: int = 0, n: int = 7) -> dict[str, bytes]:
    """Return the four compressed files of MNIST."""
    rng = np.random.default_rng(seed)
    out = {}
    for part, count in (("train", n), ("t10k", n - 2)):
        out[f"{part}-images-idx3-ubyte.gz"] = gzip.compress(idx(rng.integers(0, 256, (count, 28, 28),
                                                                             np.uint8)))
        out[f"{part}-labels-idx1-ubyte.gz"] = gzip.compress(idx(rng.integers(0, 10, count, np.uint8)))
    return out
