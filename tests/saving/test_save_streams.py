"""States in open files and in single files: flow.save with a stream, and torch.save with a path."""
import importlib
import io
import os
import shutil
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_save_load import assert_same_value, leaves, states

import flowedu as flow
from flowedu import mock
from flowedu.saving.folder import CheckpointFileError


@pytest.fixture
def torch():
    with mock.enable("torch"):
        yield importlib.import_module("torch")


def save_to_bytes(state) -> bytes:
    f = io.BytesIO()
    flow.save(state, f)
    return f.getvalue()


@given(st.one_of(states, leaves))
def test_a_stream_round_trips(state):
    """Reading starts at the stream's position, and equal states are saved as equal bytes."""
    data = save_to_bytes(state)
    assert data == save_to_bytes(state)
    f = io.BytesIO(b"before" + data)
    f.seek(6)
    assert_same_value(flow.load(f), state)


@pytest.mark.parametrize("saved", ["stream", "handle", "path"])
@pytest.mark.parametrize("read", ["stream", "handle", "path", "copy"])
def test_torch_save_writes_a_single_file(torch, tmp_path, saved, read):
    """Most programs that resume from a checkpoint call `os.path.isfile` and `shutil.copyfile` on it."""
    path, state = tmp_path / "new" / "m.pt", {"w": torch.ones(2, 3), "epoch": 3, "lr": [0.1]}
    path.parent.mkdir()
    if saved == "path":
        for _ in range(2):
            torch.save(state, path)
        assert path.stat().st_mode & 0o777 == 0o666 & ~mask()
    else:
        with path.open("wb") as f:
            if saved == "handle":
                torch.save(state, f)
            else:
                torch.save(state, made := io.BytesIO())
                f.write(made.getvalue())
    assert os.path.isfile(path) and os.listdir(path.parent) == ["m.pt"]
    if read == "copy":
        path = shutil.copyfile(path, tmp_path / "best.pth.tar")
    if read == "stream":
        got = torch.load(io.BytesIO(path.read_bytes()), map_location="cpu", weights_only=True)
    elif read == "handle":
        with path.open("rb") as f:
            got = torch.load(f, map_location="cpu")
    else:
        got = torch.load(path)
    assert_same_value(got, state)
    assert_same_value(flow.load(path), state)


def mask() -> int:
    old = os.umask(0)
    os.umask(old)
    return old


def test_torch_save_accepts_any_state(torch, tmp_path):
    for x in ([1, 2], 3.5, "text", torch.arange(3)):
        torch.save(x, tmp_path / "x.pt")
        assert_same_value(torch.load(tmp_path / "x.pt"), x)


def test_a_directory_of_flow_save_is_read_too(torch, tmp_path):
    flow.save({"x": flow.ones(2)}, tmp_path / "x")
    assert_same_value(torch.load(tmp_path / "x"), {"x": flow.ones(2)})
    with pytest.raises(CheckpointFileError, match="(?s)x is a directory.*fix"):
        torch.save({"x": flow.ones(2)}, tmp_path / "x")


def test_a_save_that_fails_leaves_the_file(torch, tmp_path):
    torch.save({"x": torch.ones(2)}, tmp_path / "x.pt")
    with pytest.raises(CheckpointFileError):
        torch.save({"x": torch.ones(2), "y": object()}, tmp_path / "x.pt")
    assert_same_value(torch.load(tmp_path / "x.pt"), {"x": torch.ones(2)})
    assert os.listdir(tmp_path) == ["x.pt"]


def test_arrays_in_bytes():
    f = io.BytesIO()
    np.savez(f, a=np.arange(3))
    assert (flow.load(io.BytesIO(f.getvalue()))["a"].numpy() == [0, 1, 2]).all()


WHOLE = save_to_bytes({"x": flow.arange(4), "y": 1})


def with_entry(name: str, **kind) -> bytes:
    f = io.BytesIO(WHOLE)
    with zipfile.ZipFile(f, "a", **kind) as z:
        z.writestr(name, "x" * 100)
    return f.getvalue()


NO_STATE = {
    "at its end": (b"", "(?s)nothing to read.*seek"), "two": (WHOLE + WHOLE, "(?s)cannot be read.*one dict"),
    "a pickle": (b"\x80\x04K\x01.", "pickle"), "half": (WHOLE[:len(WHOLE) // 2], "no file that is read"),
    "compressed": (with_entry("a", compression=zipfile.ZIP_DEFLATED), "cannot be read"),
    "changed": (WHOLE.replace(b"kInt64", b"kFloat"), "cannot be read")}


@pytest.mark.parametrize(("data", "said"), NO_STATE.values(), ids=NO_STATE)
def test_invalid_bytes_are_refused(data, said):
    with pytest.raises(CheckpointFileError, match=said):
        flow.load(io.BytesIO(data))


def test_no_other_file_is_written(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    flow.load(io.BytesIO(with_entry("../out")))
    assert os.listdir(tmp_path) == ["here"] and os.listdir() == []


def test_text_is_refused():
    with pytest.raises(CheckpointFileError, match="(?s)takes text.*wb"):
        flow.save({"x": flow.ones(1)}, io.StringIO())
    with pytest.raises(CheckpointFileError, match="(?s)got: *text.*rb"):
        flow.load(io.StringIO("x"))
