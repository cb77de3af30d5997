"""flow.save and flow.load of states: round trips, files on disk, replacement, and refused values."""
import builtins
import collections
import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.layers.parameter import Parameter
from flowedu.errors import FlowError
from flowedu.errors.extras import install
from flowedu.saving import register_saver, saver_for
from flowedu.saving.folder import CheckpointFileError, read, write


def assert_same_value(a, b):
    assert type(a) is type(b), (a, b)
    if isinstance(a, flow.Tensor):
        assert a.dtype is b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
        a, b = (x.float() if x.dtype is flow.bfloat16 else x for x in (a, b))
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for k in a:
            assert_same_value(a[k], b[k])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            assert_same_value(x, y)
    else:
        assert a == b or a != a and b != b


def round_trip(x, path):
    flow.save(x, path)
    return flow.load(path)


# --- round trips
# -----------------------------------------------------------------------------------------------------

DTYPES = [flow.float32, flow.float64, flow.float16, flow.bfloat16, flow.int8, flow.uint8, flow.int16,
          flow.int32, flow.int64, flow.bool]
tensors = st.builds(lambda d, shape, v: flow.tensor(np.full(shape, v), dtype=d), st.sampled_from(DTYPES),
                    st.lists(st.integers(0, 3), max_size=3), st.integers(0, 100))
leaves = st.one_of(st.none(), st.booleans(), st.integers(-2**70, 2**70), st.floats(), st.text(max_size=5),
                   tensors, st.builds(lambda n: np.arange(n), st.integers(0, 4)), st.sampled_from(DTYPES))
keys = st.one_of(st.text(max_size=3), st.integers(), st.booleans(), st.none(),
                 st.tuples(st.integers(), st.none()))
states = st.recursive(leaves, lambda inner: st.one_of(
    st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3),
    st.dictionaries(keys, inner, max_size=3).map(collections.OrderedDict),
    st.lists(inner, max_size=3).map(tuple)), max_leaves=8)


@given(state=states)
def test_every_structure_round_trips(tmp_path_factory, state):
    state = {"state": state, "t": flow.tensor(1.0)}
    assert_same_value(state, round_trip(state, tmp_path_factory.mktemp("s") / "c"))


def test_tensors_of_every_kind(tmp_path):
    a = np.arange(24.0).reshape(2, 3, 4)
    whole = flow.tensor(a)
    state = {"view": whole[1], "turned": whole.permute(2, 0, 1), "scalar": flow.tensor(2.5),
             "empty": flow.zeros(0, 3),
             "grad": flow.tensor([1.0], requires_grad=True), "parameter": Parameter(flow.ones(2)),
             "frozen": Parameter(flow.ones(2), requires_grad=False),
             "result": flow.tensor([1.0], requires_grad=True) * 2}
    got = round_trip(state, tmp_path / "c")
    assert not got["result"].requires_grad or got["result"].is_leaf
    got.pop("result"), state.pop("result")
    assert_same_value(state, got)
    got["view"].mul_(0)
    assert whole[1].numpy().any(), "memory of its own"


def test_a_shared_tensor_stays_shared(tmp_path):
    w = Parameter(flow.ones(1000))
    got = round_trip({"a": w, "b": [w, flow.ones(1000)]}, tmp_path / "c")
    assert got["a"] is got["b"][0] and got["a"] is not got["b"][1]
    assert sorted(n for n in os.listdir(tmp_path / "c") if n.startswith("tensor_")) == ["tensor_0",
                                                                                        "tensor_1"]


def test_tensors_lists_and_dicts_may_be_saved_alone(tmp_path):
    assert_same_value(flow.tensor([1, 2]), round_trip(flow.tensor([1, 2]), tmp_path / "a"))
    assert_same_value([flow.tensor(1.0), (flow.tensor(2),)], round_trip([flow.tensor(1.0), (flow.tensor(2),)],
                                                                        tmp_path / "b"))
    assert_same_value({"epoch": 3, "lr": math.inf}, round_trip({"epoch": 3, "lr": math.inf}, tmp_path / "c"))


def test_optimizer_states_resume(tmp_path):
    def model():
        w = flow.tensor([1.0, 2.0], requires_grad=True)
        return w, flow.optim.Adam([w], lr=0.1)

    def step(w, optimizer):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        return w.tolist()

    w, optimizer = model()
    step(w, optimizer)
    flow.save({"w": w, "optimizer": optimizer.state_dict()}, tmp_path / "c")
    want = [step(w, optimizer) for _ in range(3)]
    state = flow.load(tmp_path / "c")
    v = state["w"]
    other = flow.optim.Adam([v], lr=7)
    other.load_state_dict(state["optimizer"])
    assert [step(v, other) for _ in range(3)] == want


def test_metadata_of_a_state_dict(tmp_path):
    state = collections.OrderedDict(w=flow.tensor(1.0))
    state._metadata = collections.OrderedDict([("", {"version": 1})])
    got = round_trip(state, tmp_path / "c")
    assert type(got) is collections.OrderedDict and got._metadata == {"": {"version": 1}}


# --- files on disk
# ---------------------------------------------------------------------------------------------------

def test_the_layout_is_oneflows_without_the_pickle(tmp_path):
    flow.save({"w": flow.tensor([[1.0, 2.0, 3.0]]), "n": 5}, tmp_path / "deep" / "model")
    path = tmp_path / "deep" / "model"
    assert sorted(p.name for p in path.iterdir()) == ["snapshot_done", "state.json", "tensor_0"]
    assert (path / "tensor_0"
            / "meta").read_text(encoding="utf-8") == "shape {\n  dim: 1\n  dim: 3\n}\ndata_type: kFloat\n"
    assert (path / "tensor_0" / "out").read_bytes() == np.array([1, 2, 3], "<f4").tobytes()
    state = json.loads((path / "state.json").read_text("utf-8"))
    assert state["data"] == {"dict": [["w", {"tensor": "tensor_0"}], ["n", 5]]}
    assert flow.load(path / "tensor_0").numpy().tolist() == [[1, 2, 3]]


def test_checkpoints_of_job_functions(tmp_path):
    """Dictionaries of arrays are saved as by flow.save of OneFlow 0.4 and loaded as variables on disk."""
    flow.save({"dense-weight": np.ones((2, 3), np.float32)}, tmp_path / "c")
    got = flow.load(tmp_path / "c")
    assert got["dense-weight"].file_path == str(tmp_path / "c" / "dense-weight" / "out")
    with pytest.raises(AssertionError, match="already exists"):
        flow.save({"dense-weight": np.ones((2, 3), np.float32)}, tmp_path / "c")


def test_an_old_state_is_replaced_completely(tmp_path):
    path = tmp_path / "c"
    flow.save({"a": flow.ones(3), "b": flow.ones(3), "c": flow.ones(3)}, path)
    flow.save({"a": flow.zeros(2)}, path)
    assert flow.load(path)["a"].tolist() == [0, 0] and os.listdir(tmp_path) == ["c"]
    assert sorted(os.listdir(path)) == ["snapshot_done", "state.json", "tensor_0"]


def test_an_interrupted_save_leaves_the_old_state(tmp_path):
    path = tmp_path / "c"
    flow.save({"a": flow.ones(3)}, path)

    class Stop:
        def numpy(self):
            assert flow.load(path)["a"].tolist() == [1, 1, 1], "and while it is written"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(path, {"x": np.ones(3), "stop": Stop()}, replace=True)
    assert flow.load(path)["a"].tolist() == [1, 1, 1] and os.listdir(tmp_path) == ["c"]


def test_without_an_atomic_exchange(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "other")
    path = tmp_path / "c"
    flow.save({"a": flow.ones(3)}, path)
    flow.save({"a": flow.zeros(3)}, path)
    assert flow.load(path)["a"].tolist() == [0, 0, 0] and os.listdir(tmp_path) == ["c"]
    rename = os.rename

    def broken(a, b):
        if Path(b) == path and ".partial-" in str(a):
            raise OSError("disk full")
        rename(a, b)

    monkeypatch.setattr(os, "rename", broken)
    with pytest.raises(OSError, match="disk full"):
        flow.save({"a": flow.ones(3)}, path)
    assert flow.load(path)["a"].tolist() == [0, 0, 0] and os.listdir(tmp_path) == ["c"]


def test_nothing_else_is_ever_replaced(tmp_path):
    """flow.save(model_state, home) must not delete a user's home folder."""
    home = tmp_path / "home"
    (home / "photos").mkdir(parents=True)
    (home / "letter.txt").write_text("dear")
    with pytest.raises(AssertionError, match="no checkpoint") as e:
        flow.save({"a": flow.ones(3)}, home)
    assert ("letter.txt, photos" in str(e.value)
            and (home / "letter.txt").read_text(encoding="utf-8") == "dear")
    flow.save({"a": flow.ones(3)}, tmp_path / "c")
    (tmp_path / "c" / "tensor_0" / "notes").write_text("mine")
    with pytest.raises(AssertionError, match="no checkpoint"):
        flow.save({"a": flow.ones(3)}, tmp_path / "c")
    with pytest.raises(AssertionError, match="is a file"):
        flow.save({"a": flow.ones(3)}, home / "letter.txt")


def test_texts_next_to_variables(tmp_path):
    write(tmp_path / "g", {"w": flow.tensor([1.0])}, texts={"model.mlir": "module {}\n"}, replace=True)
    assert (tmp_path / "g" / "model.mlir").read_text(encoding="utf-8") == "module {}\n"
    assert read(tmp_path / "g")["w"].numpy().tolist() == [1]
    with pytest.raises(AssertionError, match="flow.load_graph"):
        flow.load(tmp_path / "g")
    with pytest.raises(CheckpointFileError, match="name"):
        write(tmp_path / "h", {}, texts={"../x": ""})


# --- other objects
# ---------------------------------------------------------------------------------------------------

class Plan:
    pass


class Better(Plan):
    pass


def test_a_registered_saver_handles_subclasses(tmp_path):
    seen = []
    register_saver(Plan, lambda obj, path: seen.append((obj, path)))
    plan = Better()
    flow.save(plan, "where")
    assert seen == [(plan, "where")] and saver_for(Better) is saver_for(Plan) and saver_for(dict) is None


class HasState:
    def state_dict(self):
        return {}


@pytest.mark.parametrize(("make", "words"), [
    (lambda: HasState(), r"flow.save\(hasstate.state_dict\(\), path\)"),
    (lambda: flow.optim.SGD([flow.tensor(1.0, requires_grad=True)]), r"sgd.state_dict\(\)"),
    (lambda: {"a": {"b": [1, HasState()]}},
     r"state\['a'\]\['b'\]\[1\] is no part of a state(.|\n)*state_dict"),
    (lambda: {"f": print}, r"state\['f'\] is no part of a state"),
    (lambda: {"c": 1j}, "complex"),
    (lambda: [1, 2], "no tensors"),
    (lambda: 3, "no tensors"),
    (lambda: np.ones(3), "no tensors"),
    (lambda: collections.namedtuple("N", "a")(flow.ones(1)), "N"),
])
def test_unsupported_values_are_refused(make, words, tmp_path):
    with pytest.raises(AssertionError, match=words) as e:
        flow.save(make(), tmp_path / "c")
    assert isinstance(e.value, FlowError) and "fix:" in str(e.value) and os.listdir(tmp_path) == []


# --- loading
# ---------------------------------------------------------------------------------------------------------

def test_pickles_are_never_read(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    data = pickle.dumps(Bomb())
    old = tmp_path / "oneflow"
    old.mkdir()
    (old / "pickled_data").write_bytes(data)
    for name in ("model.pt", "model.pkl", "model.npz", "model.safetensors"):
        (tmp_path / name).write_bytes(data)
    np.savez(tmp_path / "objects.npz", a=np.array([Bomb()], object))
    for path in (old, *tmp_path.glob("*.*")):
        with pytest.raises(AssertionError, match="flow.load: ") as e:
            flow.load(path)
        assert "fix:" in str(e.value)
    with pytest.raises(CheckpointFileError, match=r"would run what is in it(.|\n)*np.savez"):
        flow.load(old)
    assert not (tmp_path / "exploded").exists()
    flow.save({"a": flow.ones(1)}, old)              # replaced if requested
    assert flow.load(old)["a"].tolist() == [1]


def test_npz_files_round_trip(tmp_path):
    np.savez(tmp_path / "w.npz", w=np.arange(3.0), b=np.int64(2))
    got = flow.load(tmp_path / "w.npz")
    assert_same_value({"w": flow.tensor(np.arange(3.0)), "b": flow.tensor(2)}, got)


def test_safetensors(tmp_path, monkeypatch):
    """The package is optional: without it, the error names the extra."""
    (tmp_path / "w.safetensors").write_bytes(b"")
    real = builtins.__import__

    def none(name, *args, **kwargs):
        if name.startswith("safetensors"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", none)
    with pytest.raises(AssertionError, match=install("safetensors")):
        flow.load(tmp_path / "w.safetensors")
    package = type(sys)("safetensors")
    found = {"w": {"dtype": "F32", "shape": [2], "data": np.ones(2, "<f4").tobytes()}}
    package.deserialize = lambda raw: [*found.items()]
    monkeypatch.setattr(builtins, "__import__", real)
    monkeypatch.setitem(sys.modules, "safetensors", package)
    assert_same_value({"w": flow.ones(2)}, flow.load(tmp_path / "w.safetensors"))
    found["w"]["dtype"] = "F8_E4M3"
    with pytest.raises(CheckpointFileError, match="F8_E4M3"):
        flow.load(tmp_path / "w.safetensors")


def test_map_location(tmp_path):
    flow.save({"w": flow.ones(2)}, tmp_path / "c")
    for where in (None, "cpu", "cpu:0"):
        assert flow.load(tmp_path / "c", map_location=where)["w"].tolist() == [1, 1]


BAD = [b"", b"{", b"[]", b'{"format": "x", "data": 1}', b'{"format": "flowedu state 1"}', b"[" * 100000,
       b"\xff\xfe", *(b'{"format": "flowedu state 1", "data": ' + d + b"}" for d in (
           b'{"tensor": "../../etc"}', b'{"tensor": "tensor_7"}', b'{"tensor": 3}', b'{"new": 1}',
           b'{"dict": [[1]]}',
           b"{}", b'{"dict": [[[], 1]]}', b'{"dtype": "float77"}', b'{"float": "x"}', b'{"dict": 5}',
           b'{"tuple": null}'))]


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_damaged_structure_is_an_error(text, tmp_path):
    flow.save({"w": flow.ones(2)}, tmp_path / "c")
    (tmp_path / "c" / "state.json").write_bytes(text)
    with pytest.raises(CheckpointFileError) as e:
        flow.load(tmp_path / "c")
    assert "fix:" in str(e.value)


def test_a_damaged_tensor_is_an_error(tmp_path):
    flow.save({"w": flow.ones(2)}, tmp_path / "c")
    (tmp_path / "c" / "tensor_0" / "out").write_bytes(b"1234567")
    with pytest.raises(CheckpointFileError, match="too short"):
        flow.load(tmp_path / "c")
    with pytest.raises(CheckpointFileError, match="doesn't exist"):
        flow.load(tmp_path / "none")
    os.rename(tmp_path / "c", tmp_path / ".c.partial-0123456789ab")
    with pytest.raises(CheckpointFileError, match="interrupted"):
        flow.load(tmp_path / ".c.partial-0123456789ab")


def test_a_killed_save_leaves_the_old_state(tmp_path):
    script = f"""
import os, numpy as np, flowedu as flow
from flowedu.saving.folder import write
flow.save({{"a": flow.ones(3)}}, {str(tmp_path / 'c')!r})
class Die:
    def numpy(self): os._exit(9)
write({str(tmp_path / 'c')!r}, {{"a": np.zeros(9), "b": Die()}}, replace=True)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == 9
    assert flow.load(tmp_path / "c")["a"].tolist() == [1, 1, 1]
    flow.save({"a": flow.zeros(3)}, tmp_path / "c")
    assert os.listdir(tmp_path) == ["c"]
