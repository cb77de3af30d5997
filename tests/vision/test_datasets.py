"""Datasets read the original formats in torchvision's folder layout, and downloads are checked."""
import gzip
import hashlib
import http.server
import random
import re
import socketserver
import subprocess
import sys
import threading

import numpy as np
import pytest
from PIL import Image

import flowedu as flow
from bounds import most_by_guessing
from flowedu.errors import ArgumentError, DataError, UnsupportedError
from flowedu.errors.extras import install
from flowedu.vision import datasets, transforms
from flowedu.vision.datasets import base
from flowedu.vision.datasets import files as packed
from flowedu.vision.datasets.idx import read_idx

from . import files


@pytest.fixture
def without_pillow(monkeypatch):
    base._image.cache_clear()
    monkeypatch.setitem(sys.modules, "PIL", None)
    yield
    base._image.cache_clear()


@pytest.fixture
def server(tmp_path):
    """Start a web server and return (address, the folder it serves)."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as s:
        thread = threading.Thread(target=s.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{s.server_address[1]}/", folder
        s.shutdown()
        thread.join()


def list_file_names(folder):
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


# ---- IDX and MNIST
# -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 0, 4), (2, 3, 4)])
def test_idx_files_of_every_type(tmp_path, dtype, shape):
    a = (np.random.default_rng(0).random(shape) * 100).astype(dtype)
    (tmp_path / "a").write_bytes(files.idx(a))
    (tmp_path / "a.gz").write_bytes(gzip.compress(files.idx(a)))
    for name in ("a", "a.gz"):
        np.testing.assert_array_equal(read_idx(tmp_path / name), a, strict=True)


@pytest.mark.parametrize("change, why", [
    (lambda b: b[:-1], "promises"), (lambda b: b + b"x", "promises"), (lambda b: b"", "not an IDX file"),
    (lambda b: b"\x01" + b[1:], "not an IDX file"), (lambda b: b[:6], "no sensible sizes"),
    (lambda b: b[:4] + b"\xff" * 8 + b[12:], "no sensible sizes")])
def test_a_damaged_idx_file(tmp_path, change, why):
    (tmp_path / "a").write_bytes(change(files.idx(np.zeros((2, 3), np.uint8))))
    with pytest.raises(DataError, match=why):
        read_idx(tmp_path / "a")


@pytest.mark.parametrize("cls", [datasets.MNIST, datasets.FashionMNIST, datasets.KMNIST])
@pytest.mark.parametrize("unpacked", [False, True])
def test_mnist(tmp_path, cls, unpacked):
    raw = files.mnist()
    if unpacked:
        raw = {name[:-3]: gzip.decompress(data) for name, data in raw.items()}
    files.write_files(tmp_path / cls.__name__ / "raw", raw)
    for train, count in ((True, 7), (False, 5)):
        d = cls(tmp_path, train=train, transform=transforms.ToTensor(), target_transform=lambda y: -y)
        assert len(d) == count and len(d.classes) == 10 and d.class_to_idx[d.classes[3]] == 3
        assert (d.data.shape == (count, 28, 28) and d.data.dtype is flow.uint8
                and d.targets.dtype is flow.int64)
        x, y = d[2]
        assert (x.shape == (1, 28, 28) and x.dtype is flow.float32 and type(y) is int
                and y == -int(d.targets[2].item()))
        np.testing.assert_array_equal(x.numpy()[0], d.data.numpy()[2] / np.float32(255))
    picture, label = cls(tmp_path)[1]
    assert (isinstance(picture, Image.Image) and picture.mode == "L" and picture.size == (28, 28)
            and type(label) is int)


def test_mnist_and_fashionmnist_have_class_names():
    assert datasets.MNIST.classes[7] == "7 - seven" and datasets.FashionMNIST.classes[9] == "Ankle boot"


def test_kmnist_is_not_downloaded(tmp_path):
    with pytest.raises(RuntimeError,
                       match=r"(?s)not found.*train-images-idx3-ubyte\.gz in .*KMNIST.raw.*by hand"):
        datasets.KMNIST(tmp_path, download=True)
    files.write_files(tmp_path / "KMNIST" / "raw", files.mnist())
    assert len(datasets.KMNIST(tmp_path, download=True)) == 7


def test_without_files_the_error_reports_a_fix(tmp_path):
    for cls, words in ((datasets.MNIST, "MNISTSubset"), (datasets.FashionMNIST, "SyntheticCIFAR10"),
                       (datasets.CIFAR10, "SyntheticCIFAR10"), (datasets.CIFAR100,
                                                                "cifar-100-python.tar.gz")):
        with pytest.raises(RuntimeError, match="Dataset not found") as e:
            cls(tmp_path)
        assert "download=True" in str(e.value) and words in str(e.value)


FOLDERS = {
    "MNIST": (datasets.MNIST, "MNIST/raw", files.mnist),
    "FashionMNIST": (datasets.FashionMNIST, "FashionMNIST/raw", files.mnist),
    "CIFAR10": (datasets.CIFAR10, "cifar-10-batches-py", files.cifar10_python),
    "CIFAR10, binary": (datasets.CIFAR10, "cifar-10-batches-bin", files.cifar10_binary),
    "CIFAR100": (datasets.CIFAR100, "cifar-100-python", lambda: files.cifar100()[0]),
    "CIFAR100, binary": (datasets.CIFAR100, "cifar-100-binary", lambda: files.cifar100()[1]),
    "ImageFolder": (lambda root, train: datasets.ImageFolder(root), "cat",
                    lambda: {"1.png": b"", "2.png": b""}),
}
UNREAD = {"coarse_label_names.txt"}                # part of the archive, but not required


@pytest.mark.parametrize("train", [True, False], ids=["train", "test"])
@pytest.mark.parametrize("name", FOLDERS)
def test_a_file_that_is_missing_is_named_with_its_folder(tmp_path, name, train):
    """Delete each file in turn, then all of them, then the folder."""
    make, folder, content = FOLDERS[name]
    content, folder = content(), tmp_path / folder
    files.write_files(folder, content)
    make(tmp_path, train=train)
    needed = [f for f in content if f not in UNREAD]
    read = [f for f in needed if "MNIST" not in name or f.startswith("train" if train else "t10k")]
    for gone in needed if name != "ImageFolder" else ():          # a folder of images has no required file
        files.write_files(folder, content)
        (folder / gone).unlink()
        if gone not in read:
            make(tmp_path, train=train)
            continue
        with pytest.raises(DataError) as e:
            make(tmp_path, train=train)
        told = f"{e.value.expected} {e.value.got}"
        assert gone in told and str(folder) in told and "download=True" in e.value.fix, e.value
        named = {f for f in needed if re.search(rf"\b{re.escape(f)}(?![\w.])", told)}
        assert named == {gone}, f"is there: {told}"
    for f in folder.iterdir():
        f.unlink()
    for _ in range(2):                             # an empty folder, then no folder
        with pytest.raises(DataError) as e:
            make(tmp_path, train=train)
        assert str(tmp_path) in str(e.value) and e.value.fix
        if folder.exists():
            folder.rmdir()


def test_files_that_do_not_belong_together(tmp_path):
    raw = files.mnist()
    raw["train-labels-idx1-ubyte.gz"] = raw["t10k-labels-idx1-ubyte.gz"]
    files.write_files(tmp_path / "MNIST" / "raw", raw)
    with pytest.raises(DataError, match="do not belong together"):
        datasets.MNIST(tmp_path)


def test_the_subset_inside_the_package():
    for train, count in ((True, 6000), (False, 1000)):
        d = datasets.MNISTSubset(train=train)
        assert len(d) == count and np.bincount(d.targets.numpy()).tolist() == [count // 10] * 10
    assert d[0][0].size == (28, 28) and "Split: Test" in repr(d)


# ---- CIFAR
# -----------------------------------------------------------------------------------------------------------

def check_cifar10(d, n, first):
    rng = np.random.default_rng(0)
    batches = [files.cifar_batch(rng, 4) for _ in range(6)]
    batches = batches[:5] if first else batches[5:]
    want = np.concatenate([x for x, _ in batches]).reshape(-1, 3, 32, 32)
    assert len(d) == n and d.classes == files.CIFAR10 and d.class_to_idx["cat"] == 3
    assert d.data.shape == (n, 32, 32, 3) and d.data.dtype == np.uint8 and d.data.flags.c_contiguous
    np.testing.assert_array_equal(d.data.transpose(0, 3, 1, 2), want)
    assert d.targets == [y for _, labels in batches for y in labels]
    picture, label = d[3]
    assert (isinstance(picture, Image.Image) and picture.mode == "RGB" and picture.size == (32, 32)
            and type(label) is int)
    np.testing.assert_array_equal(np.asarray(picture), want[3].transpose(1, 2, 0))


@pytest.mark.parametrize("how", ["python", "binary", "python archive", "binary archive"])
def test_cifar10_in_each_of_its_versions(tmp_path, how):
    python = how.startswith("python")
    content = files.cifar10_python() if python else files.cifar10_binary()
    folder = "cifar-10-batches-py" if python else "cifar-10-batches-bin"
    if how.endswith("archive"):
        archive = "cifar-10-python.tar.gz" if python else "cifar-10-binary.tar.gz"
        (tmp_path / archive).write_bytes(files.tar_gz(folder, {**content, "readme.html": b"hello"}))
    else:
        files.write_files(tmp_path / folder, content)
    check_cifar10(datasets.CIFAR10(tmp_path, train=True), 20, True)
    check_cifar10(datasets.CIFAR10(tmp_path, train=False), 4, False)
    assert list_file_names(tmp_path
                           / folder) == sorted(
                               content), "nothing else was taken out of the archive, nothing is half done"


@pytest.mark.parametrize("version", [0, 1])
def test_cifar100(tmp_path, version):
    files.write_files(tmp_path / ("cifar-100-python", "cifar-100-binary")[version], files.cifar100()[version])
    d = datasets.CIFAR100(str(tmp_path))
    data, labels = files.cifar_batch(np.random.default_rng(0), 6, 100)
    assert len(d) == 6 and d.targets == labels and d.classes[42] == "fine_42"
    assert len(datasets.CIFAR100(tmp_path, False)) == 6
    np.testing.assert_array_equal(d.data.transpose(0, 3, 1, 2).reshape(6, -1), data)


@pytest.mark.parametrize("name, data, why", [
    ("data_batch_2", b"\x80\x02cos\nsystem\nU\x02ls\x85R.", "nothing is unpickled"),
    ("data_batch_2", files.pickled({"labels": [1], "data": np.zeros((2, 3072), np.uint8)}), "does not hold"),
    ("data_batch_2", files.pickled({"labels": [10], "data": np.zeros((1, 3072), np.uint8)}), "0 to 9"),
    ("data_batch_2", files.pickled({"labels": [1], "data": np.zeros((1, 3000), np.uint8)}), "does not hold"),
    ("data_batch_2", files.pickled({"labels": [1]}), "does not hold"),
    ("batches.meta", files.pickled({"label_names": ["a"]}), "10 names")])
def test_damaged_cifar(tmp_path, name, data, why):
    files.write_files(tmp_path / "cifar-10-batches-py", {**files.cifar10_python(), name: data})
    with pytest.raises(DataError, match=why):
        datasets.CIFAR10(tmp_path)


def test_damaged_binary_cifar_and_archives(tmp_path):
    files.write_files(tmp_path / "a" / "cifar-10-batches-bin", {**files.cifar10_binary(),
                                                          "data_batch_1.bin": b"x" * 3000})
    with pytest.raises(DataError, match=r"multiple of 3,073 bytes"):
        datasets.CIFAR10(tmp_path / "a")
    whole = files.tar_gz("cifar-10-batches-py", files.cifar10_python())
    for root, content, why in (("b", whole[:len(whole) // 2], "cannot read"), ("c", b"<html>", "cannot read"),
                               ("d", files.tar_gz("x", {"test_batch": b""}), "data_batch_1")):
        files.write_files(tmp_path / root, {"cifar-10-python.tar.gz": content})
        with pytest.raises(DataError, match=why):
            datasets.CIFAR10(tmp_path / root)
        assert not [n for n in list_file_names(tmp_path / root) if n.endswith(".part")]


@pytest.mark.parametrize("packed_too", [False, True], ids=["tar", "gzip"])
def test_any_damaged_archive_raises_a_data_error(tmp_path, packed_too):
    """Change any byte of the headers, in the archive or in its compressed form, and possibly truncate after
    it.
    """
    whole = files.tar_gz("c", {"one": b"1" * 600, "two": b"2"})
    plain, draw = whole if packed_too else gzip.decompress(whole), random.Random(7)
    archive, told = tmp_path / "a.tar.gz", 0
    for _ in range(250):
        at = draw.randrange(min(len(plain), draw.choice([12, 100, 2100])))
        end = draw.choice([len(plain), at + draw.randrange(12)])
        changed = plain[:at] + bytes([draw.choice([0, 4, 0x30, 0x80, 0xff,
                                                   draw.randrange(256)])]) + plain[at + 1:end]
        archive.write_bytes(changed if packed_too else gzip.compress(changed, 1))
        try:
            packed.extract(archive, ["one", "two"], tmp_path / "out")
        except DataError as e:
            told += 1
            assert "extract: " in str(e)
        assert not [n for n in list_file_names(tmp_path / "out") if n.endswith(".part")]
    assert told > 50


def test_an_archive_cannot_write_anywhere_else(tmp_path):
    content = files.tar_gz("../../out", files.cifar10_python())  # names that point outside of the folder
    files.write_files(tmp_path / "root" / "deep", {"cifar-10-python.tar.gz": content})
    datasets.CIFAR10(tmp_path / "root" / "deep")
    assert not (tmp_path / "out").exists() and not (tmp_path / "root" / "out").exists()


def test_a_file_in_an_archive_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "LARGEST", 100)
    files.write_files(tmp_path, {"cifar-10-python.tar.gz": files.tar_gz("c", files.cifar10_python())})
    with pytest.raises(DataError, match="too large"):
        datasets.CIFAR10(tmp_path)


# ---- download
# --------------------------------------------------------------------------------------------------------

def test_download_of_mnist_takes_the_next_server_and_checks(tmp_path, server, monkeypatch):
    address, folder = server
    raw = files.mnist()
    files.write_files(folder / "good", raw)
    files.write_files(folder / "bad", dict.fromkeys(raw, b"<html>log in</html>"))
    monkeypatch.setattr(datasets.MNIST, "mirrors", (address + "none/", address + "bad/", address + "good/"))
    monkeypatch.setattr(datasets.MNIST, "sha256", {n[:-3]: hashlib.sha256(b).hexdigest()
                                                   for n, b in raw.items()})
    assert len(datasets.MNIST(tmp_path / "data", download=True)) == 7
    assert list_file_names(tmp_path / "data") == sorted(raw)
    assert len(datasets.MNIST(tmp_path / "mine", download=True, source_url=address + "good")) == 7
    monkeypatch.setattr(datasets.MNIST, "mirrors", ())  # existing files are not downloaded again
    assert len(datasets.MNIST(tmp_path / "data", download=True)) == 7
    monkeypatch.setattr(datasets.MNIST, "mirrors", (address + "bad/",))
    with pytest.raises(DataError, match="sha256"):
        datasets.MNIST(tmp_path / "other", download=True)
    assert list_file_names(tmp_path / "other") == []


def test_download_of_cifar10(tmp_path, server, monkeypatch):
    address, folder = server
    archive = files.tar_gz("cifar-10-batches-py", files.cifar10_python())
    files.write_files(folder, {"cifar-10-python.tar.gz": archive})
    from flowedu.vision.datasets import cifar
    monkeypatch.setattr(cifar, "_SERVER", address)
    monkeypatch.setattr(datasets.CIFAR10, "sha256", hashlib.sha256(archive).hexdigest())
    root = tmp_path / "data"
    # a truncated download is downloaded again
    files.write_files(root, {"cifar-10-python.tar.gz": archive[:100]})
    check_cifar10(datasets.CIFAR10(root, download=True), 20, True)
    (root / "cifar-10-python.tar.gz").unlink()
    monkeypatch.setattr(cifar, "_SERVER", address + "none/")  # already extracted: nothing is downloaded
    check_cifar10(datasets.CIFAR10(root, download=True), 20, True)
    mine = datasets.CIFAR10(tmp_path / "mine", download=True, source_url=address + "cifar-10-python.tar.gz")
    check_cifar10(mine, 20, True)
    (root / "cifar-10-batches-py" / "data_batch_3").unlink()
    with pytest.raises(DataError, match=re.escape(str(root))):
        datasets.CIFAR10(root, download=True)


# ---- folders and generated images
# --------------------------------------------------------------------------------------

def test_imagefolder(tmp_path):
    for i, path in enumerate(["dog/b.png", "dog/deep/a.JPG", "cat/x.bmp", "cat/notes.txt"]):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("txt"):
            (tmp_path / path).write_text("no picture")
        else:
            Image.new("L", (4 + i, 3), 40 * i).save(tmp_path / path)
    d = datasets.ImageFolder(tmp_path, transform=transforms.PILToTensor())
    assert (d.classes == ["cat", "dog"] and d.class_to_idx == {"cat": 0, "dog": 1} and d.targets == [0, 1, 1]
            and len(d) == 3)
    assert [p.rsplit("/", 1)[1] for p, _ in d.imgs] == ["x.bmp", "b.png", "a.JPG"]
    assert d[0][0].shape == (3, 3, 6) and d[0][1] == 0 and d[1][0].numpy().max() == 0
    mine = datasets.ImageFolder(tmp_path, is_valid_file=lambda p: p.endswith("png"), allow_empty=True,
                                loader=str)
    assert len(mine) == 1 and mine[0][0].endswith("b.png")


def test_imagefolder_reports_faults(tmp_path):
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder"):
        datasets.ImageFolder(tmp_path)
    with pytest.raises(FileNotFoundError, match="cannot read"):
        datasets.ImageFolder(tmp_path / "none")
    (tmp_path / "cat").mkdir()
    with pytest.raises(FileNotFoundError, match="no valid file for the classes cat"):
        datasets.ImageFolder(tmp_path)
    (tmp_path / "cat" / "a.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"a\.png is not an image"):
        datasets.ImageFolder(tmp_path)[0]
    with pytest.raises(ValueError, match="Both extensions and is_valid_file"):
        datasets.DatasetFolder(tmp_path, str)


def test_fakedata():
    d = datasets.FakeData(size=5, image_size=(3, 8, 6), num_classes=4, transform=transforms.ToTensor())
    assert len(d) == 5 and d[0][0].shape == (3, 8, 6) and 0 <= d[0][1] < 4
    np.testing.assert_array_equal(d[3][0].numpy(), d[3][0].numpy())
    assert (d[3][0].numpy() != d[2][0].numpy()).any()
    other = datasets.FakeData(size=5, image_size=(3, 8, 6), random_offset=1, transform=transforms.ToTensor())
    assert (d[3][0].numpy() != other[3][0].numpy()).any()
    assert datasets.FakeData(image_size=(1, 8, 6))[0][0].mode == "L"
    with pytest.raises(IndexError):
        d[5]
    assert len([x for x, _ in d]) == 5, "a loop over it ends"


def test_syntheticcifar10_has_the_layout_of_cifar10_and_a_notice():
    d = datasets.SyntheticCIFAR10(size=200)
    assert len(d) == 200 and d.data.shape == (200, 32, 32, 3) and d.data.dtype == np.uint8
    assert (np.bincount(d.targets).tolist() == [20] * 10 and len(set(d.classes)) == 10
            and "airplane" not in d.classes)
    assert d[7][0].mode == "RGB" and d[7][1] == 7
    np.testing.assert_array_equal(d.data, datasets.SyntheticCIFAR10(size=200).data)
    assert (d.data != datasets.SyntheticCIFAR10(train=False, size=200).data).any()
    assert "not the pictures of CIFAR-10" in repr(d) and "not CIFAR-10" in datasets.SyntheticCIFAR10.__doc__
    assert d.data.reshape(200, -1).std(1).min() > 20, "every picture has something on it"


def test_the_shapes_are_distinguishable():
    """Centered gray images of one shape are on average more similar to each other than to those of other
    shapes.
    """
    d = datasets.SyntheticCIFAR10(size=2000)
    grey = d.data.astype(np.float64).mean(3)
    edges = np.abs(np.diff(grey, axis=1))[:, :, 1:] + np.abs(np.diff(grey, axis=2))[:, 1:]
    feature = np.stack([(edges > 30).mean((1, 2)), edges.max((1, 2))], 1)
    feature = (feature - feature.mean(0)) / feature.std(0)
    means = np.stack([feature[np.array(d.targets) == c].mean(0) for c in range(10)])
    right = (((feature[:, None] - means) ** 2).sum(2).argmin(1) == d.targets).mean()
    assert right > most_by_guessing(2000, 10), "even the amount of edges says more than chance"


# ---- shared behavior
# -------------------------------------------------------------------------------------------------

def test_without_pillow_pictures_are_arrays(tmp_path, without_pillow):
    files.write_files(tmp_path / "cifar-10-batches-py", files.cifar10_python())
    files.write_files(tmp_path / "MNIST" / "raw", files.mnist())
    x, _ = datasets.CIFAR10(tmp_path)[0]
    assert isinstance(x, np.ndarray) and x.shape == (32, 32, 3) and x.dtype == np.uint8
    assert datasets.MNIST(tmp_path)[0][0].shape == (28, 28)
    ready = datasets.CIFAR10(tmp_path, transform=transforms.Compose([
        transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), transforms.Resize(16),
        transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.5,) * 3)]))[0][0]
    assert ready.shape == (3, 16, 16)
    (tmp_path / "f" / "cat").mkdir(parents=True)
    (tmp_path / "f" / "cat" / "a.png").write_bytes(b"")
    with pytest.raises(UnsupportedError, match=install("image")):
        datasets.ImageFolder(tmp_path / "f")[0]


def test_importing_it_imports_nothing_heavy():
    code = ("import sys, flowedu.vision as v; before = set(sys.modules); v.datasets.SyntheticCIFAR10; "
            "v.transforms.Resize; v.models.resnet18; heavy = {'PIL', 'torch', 'safetensors', 'tarfile', "
            "'matplotlib', 'multiprocessing'}; assert 'flowedu.vision.models' not in before; sys.exit(' "
            "'.join(heavy & set(sys.modules) - before))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert not done.stderr.strip(), done.stderr


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_draws_the_same_pictures_for_the_same_seed(workers):
    ready = transforms.Compose([transforms.RandomCrop(32, padding=8), transforms.RandomHorizontalFlip(),
                                transforms.ToTensor()])
    d = datasets.SyntheticCIFAR10(size=1, transform=ready)
    loader = flow.utils.data.DataLoader(flow.utils.data.ConcatDataset([d] * 24), 4, num_workers=workers)

    def epoch(seed=None):
        if seed is not None:
            flow.manual_seed(seed)
        return np.concatenate([x.numpy() for x, _ in loader])

    first, more = epoch(5), epoch()
    np.testing.assert_array_equal(first, epoch(5))
    assert (first != epoch(6)).any() and (
        first != more).any(), "another seed, and the next epoch, are other pictures"
    assert len({x.tobytes() for x in first}) > 20, "no two workers draw the same"


def test_repr(tmp_path):
    files.write_files(tmp_path / "MNIST" / "raw", files.mnist())
    d = datasets.MNIST(tmp_path, transform=transforms.Compose([transforms.ToTensor()]))
    assert repr(d) == f"""Dataset MNIST
    Number of datapoints: 7
    Root location: {tmp_path}
    Split: Train
    StandardTransform
Transform: Compose(
               ToTensor()
           )"""


def test_transforms_and_transform_exclude_each_other():
    class Mine(datasets.VisionDataset):
        def __len__(self):
            return 1

        def raw(self, index):
            return 1, 2

    assert Mine(transforms=lambda x, y: (y, x))[0] == (2, 1)
    with pytest.raises(ArgumentError, match="Only transforms or transform/target_transform"):
        Mine(transforms=max, transform=max)
