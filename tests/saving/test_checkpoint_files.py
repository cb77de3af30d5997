"""Checkpoint directories: round trips, OneFlow's exact format, atomic writes, and a clear error for every
kind of damage.
"""
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from flowedu.core.values import dtype as dt
from flowedu.errors import CheckpointError
from flowedu.oneflow04.job import checkpoint_files as cf

# A variable's name becomes a folder's name, and under the C locale without UTF-8 mode, file names are ASCII
# only.
ALPHABET = st.characters(codec=sys.getfilesystemencoding())
NAMES = st.text(ALPHABET, min_size=1, max_size=20).filter(
    lambda s: not set(s) & set("/\\\0") and ".." not in s and s not in (".", "snapshot_done"))
TYPES = [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_]
ARRAYS = st.sampled_from(TYPES).flatmap(
    lambda t: hnp.arrays(t, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)))
FLOAT_META = "shape {\n  dim: 2\n  dim: 3\n}\ndata_type: kFloat\n"


class raises_file_error:
    """Context manager that expects a complete CheckpointFileError with these words."""

    def __init__(self, *words):
        self.words = words

    def __enter__(self):
        self.context = pytest.raises(cf.CheckpointFileError)
        self.info = self.context.__enter__()

    def __exit__(self, *exc):
        result = self.context.__exit__(*exc)
        e = self.info.value
        assert (isinstance(e, CheckpointError) and isinstance(e, AssertionError)
                and isinstance(e, RuntimeError))
        assert e.problem and e.expected and e.got and e.fix, str(e)
        for word in self.words:
            assert word in str(e), f"{word!r} is not in: {e}"
        return result


@pytest.fixture
def variable(tmp_path):
    """Write a valid variable directory, 2 x 3 floats, to be damaged."""
    cf.write(tmp_path / "c", {"w": np.arange(6, dtype=np.float32).reshape(2, 3)})
    return tmp_path / "c" / "w"


def are_equal_arrays(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# --- round trips
# -----------------------------------------------------------------------------------------------------

@given(st.dictionaries(NAMES, ARRAYS, max_size=4))
def test_checkpoints_round_trip(tmp_path_factory, arrays):
    path = tmp_path_factory.mktemp("c") / "new" / "deeper"
    cf.write(path, arrays)
    back = cf.read(path)
    assert set(back) == set(arrays) and list(back) == sorted(back)
    for name, a in arrays.items():
        assert back[name].shape == a.shape and back[name].dtype.numpy == a.dtype
        assert are_equal_arrays(back[name].numpy(), a), "to the bit, NaNs too"
    assert (path / "snapshot_done").read_bytes() == b""
    assert sorted(p.name for p in path.iterdir()) == sorted({*arrays, "snapshot_done"})
    assert [p.name for p in path.parent.iterdir()] == ["deeper"], "nothing else is left behind"


@given(hnp.arrays(st.sampled_from([">f4", ">i8", "<f8", ">f2"]), (3, 4)), st.sampled_from(["T", "step", "F"]))
def test_byte_order_and_strides_do_not_matter(tmp_path_factory, a, how):
    a = {"T": a.T, "step": a[::-1, ::2], "F": np.asfortranarray(a)}[how]
    path = tmp_path_factory.mktemp("c")
    cf.write(path, {"w": a})
    assert are_equal_arrays(cf.read(path)["w"].numpy(), np.ascontiguousarray(a, a.dtype.newbyteorder("=")))


def test_an_entry_of_one_checkpoint_goes_into_another(tmp_path):
    a = np.arange(6.0).reshape(2, 3)
    cf.write(tmp_path / "1", {"a": a, "b": np.float32(5)})
    cf.write(tmp_path / "2", cf.read(tmp_path / "1"))
    back = cf.read(tmp_path / "2")
    assert are_equal_arrays(back["a"].numpy(), a) and back["b"].shape == () and back["b"].numpy() == 5


def test_the_directory_of_one_variable_gives_that_variable(variable):
    b = cf.read(variable)
    assert isinstance(b, cf.FileBackendVariableBlob) and b.shape == (2, 3) and b.dtype is dt.float32
    assert b.file_path == str(variable / "out") and "float32[2, 3]" in repr(b)


def test_numpy_gives_a_new_array_each_time(variable):
    b = cf.read(variable)
    b.numpy()[:] = 9
    assert b.numpy()[1, 2] == 5 and b.numpy().flags.writeable


def test_data_are_read_only_when_asked_for(variable):
    b = cf.read(variable)
    (variable / "out").write_bytes(np.full(6, 7, "<f4").tobytes())
    assert (b.numpy() == 7).all()


# --- the format, byte by byte
# ----------------------------------------------------------------------------------------

def test_the_files_are_those_of_oneflow(tmp_path):
    values = {"dense1-weight": np.array([[1, 2, 3], [4, 5, 6]], np.float32), "System-Train-TrainStep-job":
              np.array([7], np.int64), "half": np.array([1], np.float16), "scalar": np.float64(1)}
    cf.write(tmp_path, values)
    assert (tmp_path / "dense1-weight" / "meta").read_bytes() == FLOAT_META.encode()
    assert (tmp_path / "dense1-weight" / "out").read_bytes().hex() == (
        "0000803f 00000040 00004040 00008040 0000a040 0000c040".replace(" ", ""))
    meta = (tmp_path / "System-Train-TrainStep-job" / "meta").read_text("utf-8")
    assert meta == "shape {\n  dim: 1\n}\ndata_type: kInt64\n"
    assert (tmp_path / "System-Train-TrainStep-job" / "out").read_bytes() == b"\7" + bytes(7)
    assert (tmp_path / "half" / "out").read_bytes() == b"\x00\x3c"
    assert (tmp_path / "scalar" / "meta").read_text(encoding="utf-8") == "shape {\n}\ndata_type: kDouble\n"


@pytest.mark.parametrize("token, d", [
    ("kChar", dt.char), ("kFloat", dt.float32), ("kDouble", dt.float64), ("kInt8", dt.int8),
    ("kInt32", dt.int32),
    ("kInt64", dt.int64), ("kUInt8", dt.uint8), ("kFloat16", dt.float16), ("1", dt.char), ("2", dt.float32),
    ("3", dt.float64), ("4", dt.int8), ("5", dt.int32), ("6", dt.int64), ("7", dt.uint8), ("9", dt.float16),
    ("kInt16", dt.int16)])
def test_every_data_type_is_read(tmp_path, token, d):
    (tmp_path / "out").write_bytes(np.array([1, 0, 1], d.numpy).tobytes())
    (tmp_path / "meta").write_text(f"shape {{ dim: 3 }} data_type: {token}", encoding="utf-8")
    b = cf.read(tmp_path)
    assert b.dtype is d and are_equal_arrays(b.numpy(), np.array([1, 0, 1], d.numpy))


def test_char_and_int8_are_distinguished(tmp_path):
    class Char:
        dtype = dt.char

        def numpy(self):
            return np.array([1], np.int8)

    cf.write(tmp_path, {"c": Char(), "i": np.array([1], np.int8)})
    assert cf.read(tmp_path)["c"].dtype is dt.char and cf.read(tmp_path)["i"].dtype is dt.int8


@pytest.mark.parametrize("text", [
    FLOAT_META, "shape: {dim:2 dim:3} data_type:kFloat",
    "# a comment\nshape {\n dim: 2, dim: 3; }\n\ndata_type: 2 # x", FLOAT_META.replace("\n", "\r\n")])
def test_other_ways_to_write_the_same_protobuf(variable, text):
    (variable / "meta").write_text(text, encoding="utf-8")
    assert (cf.read(variable).shape, cf.read(variable).dtype) == ((2, 3), dt.float32)


def test_other_files_are_ignored(variable):
    root = variable.parent
    (root / "notes.txt").write_text("x")
    (root / "empty").mkdir()
    (root / "only_meta").mkdir()
    (root / "only_meta" / "meta").write_text(FLOAT_META, encoding="utf-8")
    (root / "snapshot_done").unlink()
    assert list(cf.read(root)) == ["w"]


def test_the_oldest_checkpoints_have_no_meta(variable):
    (variable / "meta").unlink()
    b = cf.read(variable)
    assert b.shape is None and b.dtype is None and not b.has_meta_info and "no meta" in repr(b)
    with raises_file_error("This variable does not have meta info"):
        b.numpy()
    b = cf.FileBackendVariableBlob(variable, dt.float32, (3, 2))
    assert b.numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    with raises_file_error("24 bytes", "16 bytes"):
        cf.FileBackendVariableBlob(variable, dt.float32, (2, 2))
    with raises_file_error("both or neither"):
        cf.FileBackendVariableBlob(variable, dt.float32)


# --- damage
# ----------------------------------------------------------------------------------------------------------

@given(size=st.integers(0, 60).filter(lambda n: n != 24))
def test_a_file_of_the_wrong_size_is_named_with_both_sizes(tmp_path_factory, size):
    path = tmp_path_factory.mktemp("w")
    (path / "meta").write_text(FLOAT_META, encoding="utf-8")
    (path / "out").write_bytes(bytes(size))
    with raises_file_error(str(path / "out"), "24 bytes", f"{size} bytes",
                           "too short" if size < 24 else "too long"):
        cf.read(path)


def test_a_file_changed_after_read_is_noticed_by_numpy(variable):
    b = cf.read(variable)
    for size in (20, 28):
        os.truncate(variable / "out", size)
        with raises_file_error("24 bytes", f"{size} bytes"):
            b.numpy()


@pytest.mark.parametrize("text", [
    "", "garbage", "shape {", "shape { dim: 2 dim: 3 }", "data_type: kFloat",
    "shape { dim: x } data_type: kFloat",
    "shape { dim: -2 } data_type: kFloat", "shape { dim: 2.0 } data_type: kFloat",
    "shape { dim } data_type: kFloat",
    "shape { dim: 2 3 } data_type: kFloat", "shape { size: 2 } data_type: kFloat", FLOAT_META + "more: 1",
    "shape { dim: " + "9" * 30 + " } data_type: kFloat", "shape {" + " dim: 1" * 33 + " } data_type: kFloat",
    "shape {" + " dim: 999999999" * 3 + " } data_type: kFloat", "shape { dim: ٣ } data_type: kFloat"])
def test_an_invalid_meta_is_refused(variable, text):
    (variable / "meta").write_text(text, encoding="utf-8")
    with raises_file_error(str(variable / "meta"), "shape { dim: 10"):
        cf.read(variable)


@pytest.mark.parametrize("token", ["kOFRecord", "kTensorBuffer", "kQuad", "8", "0", "kfloat"])
def test_an_unknown_data_type_is_refused(variable, token):
    (variable / "meta").write_text(FLOAT_META.replace("kFloat", token), encoding="utf-8")
    with raises_file_error(str(variable / "meta"), token, "kDouble"):
        cf.read(variable)


WORDS = st.lists(st.sampled_from(["shape", "{", "}", "dim", ":", "2", "3", "0", "data_type", "kFloat",
                                  "kInt8", "\n",
                                  "#", "999999999999999999", "[", ","]), max_size=16).map(" ".join)


@given(st.one_of(st.binary(max_size=200), WORDS.map(str.encode)), st.binary(max_size=40))
@example(b"shape { dim: 0 dim: 999999999999999999 } data_type: kFloat", b"")
@example(b"shape { } data_type: kInt8", b"x")
def test_any_damaged_meta_raises_a_checkpoint_error(tmp_path_factory, meta, data):
    path = tmp_path_factory.mktemp("w")
    (path / "meta").write_bytes(meta)
    (path / "out").write_bytes(data)
    try:
        b = cf.read(path)
    except cf.CheckpointFileError:
        return
    assert b.numpy().shape == b.shape and b.numpy().nbytes == len(data)


def test_a_long_malicious_meta_is_parsed_quickly(variable):
    for text in ("shape { " + "dim : 1 " * 200_000, " \n" * 10**6, "shape {" + " " * 10**6 + "x",
                 "#" * 10**6):
        (variable / "meta").write_text(text, encoding="utf-8")
        start = time.process_time()                  # CPU time, so that other processes do not count
        with raises_file_error():
            cf.read(variable)
        assert time.process_time() - start < 5


def test_nothing_is_unpickled(variable, tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "boom"),)

    for name in ("out", "meta"):
        (variable / name).write_bytes(pickle.dumps(Bomb()))
        with raises_file_error():
            cf.read(variable).numpy()
    assert not (tmp_path / "boom").exists()


def test_nonzero_bytes_of_a_bool_become_true(tmp_path):
    (tmp_path / "meta").write_text("shape { dim: 3 } data_type: kBool")
    (tmp_path / "out").write_bytes(b"\0\1\7")
    assert cf.read(tmp_path).numpy().view(np.uint8).tolist() == [0, 1, 1]


def test_a_missing_directory_is_reported(tmp_path):
    with raises_file_error(f"Directory {tmp_path / 'none'} doesn't exist!"):
        cf.read(tmp_path / "none")
    (tmp_path / "file").write_text("x")
    with raises_file_error("doesn't exist!", "a file"):
        cf.read(tmp_path / "file")
    with raises_file_error("out"):
        cf.FileBackendVariableBlob(tmp_path)


# --- atomicity
# -------------------------------------------------------------------------------------------------------

def test_only_a_new_path_or_an_empty_directory_is_accepted(tmp_path, monkeypatch):
    a = {"w": np.zeros(2)}
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    (tmp_path / "empty").mkdir()
    with raises_file_error("file"):
        cf.write(tmp_path / "file", a)
    with raises_file_error("Non-empty directory", "already exists!"):
        cf.write(tmp_path / "full", a)
    cf.write(str(tmp_path / "empty"), a)
    with raises_file_error("already exists!"):
        cf.write(tmp_path / "empty", a)
    assert ([p.name for p in (tmp_path / "full").iterdir()] == ["x"]
            and (tmp_path / "file").read_text("utf-8") == "x")
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    with raises_file_error("current directory"):
        cf.write(".", a)
    cf.write("relative/snapshot", a)
    assert list(cf.read("relative/snapshot")) == ["w"]


def test_a_link_to_an_empty_directory_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    cf.write(tmp_path / "link", {"w": np.zeros(2)})
    assert (tmp_path / "link").is_symlink() and list(cf.read(tmp_path / "real")) == ["w"]


@pytest.mark.parametrize("name", ["", ".", "..", "../w", "a/b", "/w", "a\\b", "a..b", "w\0", "snapshot_done",
                                  "x" * 256, "ä" * 128, "\ud800", 5, None])
def test_a_name_that_would_leave_the_directory_is_refused(tmp_path, name):
    with raises_file_error(repr(name)):
        cf.write(tmp_path / "c", {"good": np.zeros(2), name: np.zeros(2)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [[1.0], 1.0, None, "text", np.array([None]), np.array(["a"]),
                                   np.zeros(2, complex),
                                   np.zeros(2, np.uint16), np.zeros(2, "datetime64[s]"),
                                   np.zeros(2, "f4,i4")])
def test_a_non_numeric_value_is_refused_and_leaves_no_files(tmp_path, value):
    with raises_file_error("'bad'"):
        cf.write(tmp_path / "c", {"good": np.zeros(2), "bad": value})
    assert list(tmp_path.iterdir()) == []


class Failing:
    def __init__(self, error):
        self.error = error

    def numpy(self):
        raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError("disk full")])
@pytest.mark.parametrize("exists", [True, False])
def test_an_interrupted_write_leaves_no_files(tmp_path, error, exists):
    path = tmp_path / "c"
    if exists:
        path.mkdir()
    with pytest.raises(error if isinstance(error, type) else type(error)):
        cf.write(path, {"a": np.zeros(1000), "b": Failing(error)})
    assert path.exists() == exists and [p for p in tmp_path.rglob("*") if p != path] == []
    cf.write(path, {"a": np.zeros(3)})
    assert list(cf.read(path)) == ["a"]


def test_a_killed_process_leaves_nothing_at_the_path(tmp_path):
    script = f"""
import os, numpy as np
from flowedu.oneflow04.job import checkpoint_files as cf
class Die:
    def numpy(self): os._exit(9)
cf.write({str(tmp_path / 'c')!r}, {{"a": np.zeros(1000), "b": Die()}})
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == 9
    assert not (tmp_path / "c").exists()
    assert [p.name.startswith(".c.partial-") for p in tmp_path.iterdir()] == [True]
    cf.write(tmp_path / "d", {"a": np.zeros(3)})
    assert list(cf.read(tmp_path / "d")) == ["a"]
    assert [p.name for p in tmp_path.iterdir()] == [
        "d"], "the next save into the same place removes what was left"


def test_only_leftovers_of_dead_processes_are_removed(tmp_path):
    """Folders in use and unrelated files are not removed."""
    for name in (".x.partial-", ".partial-0123456789ab.txt", "x.partial-0123456789ab", ".x"):
        (tmp_path / name).mkdir()
    (tmp_path / ".file.partial-0123456789ab").write_text("")
    (tmp_path / ".link.partial-0123456789ab").symlink_to(tmp_path / ".x")
    before = {p.name for p in tmp_path.iterdir()}
    (tmp_path / ".left.partial-0123456789ab" / "w").mkdir(parents=True)

    class Slow:
        def numpy(self):
            cf.write(tmp_path / "fast", {"w": np.ones(2)})
            return np.zeros(2)

    cf.write(tmp_path / "slow", {"a": np.zeros(2), "b": Slow()})
    assert {p.name for p in tmp_path.iterdir()} == before | {"slow", "fast"}
    assert list(cf.read(tmp_path / "slow")) == ["a", "b"]


def test_concurrent_writers_leave_one_complete_checkpoint(tmp_path):
    path = tmp_path / "c"

    class Slow:
        def numpy(self):
            if not path.exists():
                cf.write(path, {"fast": np.ones(2)})
            return np.zeros(2)

    with raises_file_error("already exists!"):
        cf.write(path, {"slow": Slow()})
    assert list(cf.read(path)) == ["fast"] and [p.name for p in tmp_path.iterdir()] == ["c"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_files_have_the_usual_permissions(tmp_path):
    (tmp_path / "usual").mkdir()
    cf.write(tmp_path / "c", {"w": np.zeros(2)})
    assert (tmp_path / "c").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_reading_many_variables_loads_none(tmp_path, monkeypatch):
    cf.write(tmp_path, {f"w{i}": np.zeros(3) for i in range(5)})
    monkeypatch.setattr(np, "fromfile", lambda *a, **k: pytest.fail("read data before it was asked for"))
    assert len(cf.read(Path(tmp_path))) == 5
