"""Damaged and malicious files of every format either load or raise the library's own error with the path in
it.
"""
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.errors import FlowError
from flowedu.saving.folder import CheckpointFileError, write
from flowedu.vision.datasets.idx import read_idx
from flowedu.vision.datasets.pickled import read_pickled

STATE = {"w": flow.arange(6, dtype=flow.float32).reshape(2, 3), "n": [1, 2.0, "x"]}


def save_packed(path):
    with open(path, "wb") as f:
        flow.save(STATE, f)


def save_tensors(path):
    from safetensors.numpy import save_file
    save_file({"w": np.ones((2, 3), np.float32), "b": np.ones(2, np.float32)}, path)


def save_index(path):
    save_tensors(path.with_name("a.safetensors"))
    table = {"w": "a.safetensors", "b": "a.safetensors"}
    path.write_text(json.dumps({"metadata": {"total_size": 32}, "weight_map": table}), encoding="utf-8")


def save_idx(path):
    path.write_bytes(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3]) + bytes(range(6)))


def save_cifar(path):
    path.write_bytes(pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 2]}, 2))


def save_picture(path):
    from PIL import Image
    Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(path)


class Linear(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(2, 3)

    def build(self, x):
        return self.model(x).relu()


def save_graph(path):
    graph = Linear()
    graph(flow.ones(1, 2))
    flow.save(graph, path)


def save_records(path):
    with flow.data.ofrecord_writer(path) as writer:
        for n in range(3):
            writer.write({"x": [1.0, 2.0], "n": n, "b": b"text"})


def load_variables(path):
    for variable in flow.load(path).values():
        variable.numpy()


def read_records(path):
    from flowedu.oneflow04.data.ofrecord import ofrecord_records
    return list(ofrecord_records(path / "part-0"))


# file name: (required package, save(path), load(path))
FORMATS = {
    "x.npz": (None, lambda path: np.savez(path, w=np.ones((2, 3)), b=np.ones(2, np.int8)), flow.load),
    "y.npz": (None, lambda path: np.savez_compressed(path, w=np.ones((2, 3))), flow.load),
    "x.pt": (None, save_packed, flow.load),
    "x.safetensors": ("safetensors", save_tensors, flow.load),
    "x.safetensors.index.json": ("safetensors", save_index, flow.load),
    "x-ubyte": (None, save_idx, read_idx),
    "x.cifar": (None, save_cifar, read_pickled),
    "x.png": ("PIL", save_picture, lambda path: flow.vision.io.read_image(str(path))),
    "x.jpg": ("PIL", save_picture, lambda path: flow.vision.io.read_image(str(path))),
}
BYTES = st.integers(0, 255) | st.sampled_from([0, 1, 0x7f, 0x80, 0xff])


@st.composite
def changes(draw):
    """Draw a function that damages bytes: it replaces some, truncates, duplicates a part, or inserts."""
    kind = draw(st.sampled_from(["bytes", "bytes", "bytes", "cut", "double", "insert"]))
    at, to = draw(st.floats(0, 1)), draw(st.floats(0, 1))
    values = draw(st.lists(st.tuples(st.floats(0, 1), BYTES), min_size=1, max_size=4))

    def change(data):
        i, j = sorted((int(at * len(data)), int(to * len(data))))
        if kind == "cut":
            return data[:i]
        if kind == "double":
            return data[:j] + data[i:]
        if kind == "insert":
            return data[:i] + bytes(value for _, value in values) + data[i:]
        data = bytearray(data)
        for place, value in values:
            data[int(place * (len(data) - 1))] = value
        return bytes(data)
    return change


def assert_loads_or_names_file(path, load, names=()):
    """Check that `load` returns a result or raises a FlowError that names the file."""
    try:
        load(path)
    except FlowError as error:
        assert any(name in str(error) for name in (path.name, *names)), error


@pytest.mark.parametrize("name", FORMATS)
@given(change=changes())
def test_randomly_damaged_files_load_or_name_the_file(tmp_path_factory, name, change):
    package, save, load = FORMATS[name]
    if package:
        pytest.importorskip(package)
    path = tmp_path_factory.getbasetemp() / "damage" / name
    path.parent.mkdir(exist_ok=True)
    if not (original := path.with_name(name + ".whole")).exists():
        save(path)
        original.write_bytes(path.read_bytes())
    path.write_bytes(change(original.read_bytes()))
    assert_loads_or_names_file(path, load, ["a.safetensors"])


# folder name: (required package, save(path), load(path))
FOLDERS = {
    "state": (None, lambda path: flow.save(STATE, path), flow.load),
    "variables": (None, lambda path: write(path, {"a-w": np.ones((2, 3), np.float32), "b": np.arange(3)}),
                  load_variables),
    "graph": (None, save_graph, flow.load_graph),
    "records": ("google.protobuf", save_records, read_records),
}


@pytest.mark.parametrize("name", FOLDERS)
@given(change=changes(), which=st.floats(0, 1))
def test_randomly_damaged_folders_load_or_name_the_file(tmp_path_factory, name, change, which):
    package, save, load = FOLDERS[name]
    if package:
        pytest.importorskip(package)
    base = tmp_path_factory.getbasetemp() / "damaged folders"
    base.mkdir(exist_ok=True)
    if not (base / name).exists():
        save(base / name)
    files = sorted(p for p in (base / name).rglob("*") if p.is_file() and p.stat().st_size)
    file = files[int(which * (len(files) - 1))]
    original = file.read_bytes()
    try:
        file.write_bytes(change(original))
        assert_loads_or_names_file(base / name, load)
    finally:
        file.write_bytes(original)


@pytest.mark.parametrize("name", ["x.npz", "y.npz", "x.pt"])
def test_every_byte_of_a_zip_directory(tmp_path, name):
    """Change each byte of the central directory and the end record to three values, which affects versions,
    methods, flags, and sizes.
    """
    _, save, load = FORMATS[name]
    path = tmp_path / name
    save(path)
    data = path.read_bytes()
    for i in range(data.index(b"PK\1\2"), len(data)):
        for value in (0xff, 0x00, data[i] ^ 0x41):
            path.write_bytes(data[:i] + bytes([value]) + data[i + 1:])
            assert_loads_or_names_file(path, load)


def test_shards_of_an_index(tmp_path):
    pytest.importorskip("safetensors")
    from safetensors.numpy import save_file
    save_file({"w": np.ones((2, 3), np.float32), "not in the index": np.ones(1)}, tmp_path / "a.safetensors")
    save_file({"b": np.full(2, 7, np.int64)}, tmp_path / "b.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": "a.safetensors", "b": "b.safetensors"}}),
                     encoding="utf-8")
    state = flow.load(index)
    assert set(state) == {"w", "b"} and state["b"].tolist() == [7, 7] and state["w"].shape == (2, 3)


MAPS = [None, [], "x", 1, {}, {"w": None}, {"w": 1}, {"w": []}, {"w": "../out.safetensors"},
        {"w": "/etc/passwd"},
        {"w": "sub/a.safetensors"}, {"w": "sub\\a.safetensors"}, {"w": "absent.safetensors"},
        {"w": "a.safetensors\0"},
        {"w": "a.pkl"}, {"w": ""}, {"w": "."}, {"w": "folder.safetensors"}, {"absent": "a.safetensors"},
        {"w": "model.safetensors.index.json"}, {"w": "\ud800.safetensors"}, {"w": {"a": "a.safetensors"}}]


@pytest.mark.parametrize("table", MAPS, ids=range(len(MAPS)))
def test_hostile_indexes_are_refused(tmp_path, table):
    pytest.importorskip("safetensors")
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / "folder.safetensors").mkdir()
    for place in (folder / "a.safetensors", tmp_path / "out.safetensors", folder / "sub" / "a.safetensors"):
        save_tensors(place)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": table}), encoding="utf-8")
    if table == {}:
        assert flow.load(index) == {}
        return
    with pytest.raises(CheckpointFileError, match="model"):
        flow.load(index)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "NaN", "[" * 100000, '{"weight_map"', '"\\ud800"',
                                  "\ufeff{}"],
                         ids=range(9))
def test_indexes_that_are_not_json(tmp_path, text):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointFileError, match="model.safetensors.index.json"):
        flow.load(index)
