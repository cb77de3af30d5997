"""Checkpoints: flow.save and flow.load, flow.train's CheckPoint and SimpleCheckPointManager, and jobs that
start from a snapshot.
"""
import os

import numpy as np
import pytest

import flowedu as flow
import flowedu.oneflow04.job.train
from common import (  # noqa: F401
    constant,
    constant_rate,
    f32,
    fresh_session,
    job,
    refused,
    run,
    variable_values,
)
from flowedu.core.job.session import default_session
from flowedu.oneflow04.job import checkpoint_files as cf

x = f32(4, 3)
NAMES = ["System-Train-TrainStep-train", "d-bias", "d-weight"]


def trainer(units=2, name="d"):
    """Define a train job with fresh variables, in a new session."""
    flow.clear_default_session()

    def body(a):
        loss = flow.layers.dense(a, units, kernel_initializer=flow.random_normal_initializer(), name=name)
        flow.optimizer.SGD(constant_rate(0.1), momentum=0).minimize(loss)
        return loss

    return job(body, x, type="train", name="train")


def assert_same_arrays(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], name)


# --- flow.save, flow.load, flow.checkpoint
# ---------------------------------------------------------------------------

def test_files_without_a_session(tmp_path):
    a = {"w": f32(2, 3), "t": np.array([1.0, 2.0]), "s": np.int64(3)}
    flow.save(a, str(tmp_path / "c"))
    got = flow.load(tmp_path / "c")
    np.testing.assert_array_equal(got["w"].numpy(), a["w"])
    assert got["t"].numpy().tolist() == [1, 2] and got["s"].numpy() == 3 and got["s"].shape == ()
    assert flow.load(str(tmp_path / "c" / "w")).name == "w" and got["w"].dtype is flow.float32
    assert got["w"].file_path == str(tmp_path / "c" / "w" / "out")
    assert not default_session().running and not default_session().jobs


@pytest.mark.parametrize("call", [lambda p: flow.save([1], p), lambda p: flow.save(f32(2), p),
                                  lambda p: flow.save({}, 3),
                                  lambda p: flow.load(3), lambda p: flow.load(None),
                                  lambda p: flow.checkpoint.get(None),
                                  lambda p: flow.checkpoint.save(p, [1]),
                                  lambda p: flow.checkpoint.save(None)])
def test_other_arguments_are_refused(tmp_path, call):
    trainer()
    with refused(AssertionError):
        call(str(tmp_path / "c"))
    assert os.listdir(tmp_path) == []


def test_loading_a_folder_without_a_checkpoint_is_refused(tmp_path):
    """A mistaken path is refused; silently loading nothing would discard the training."""
    flow.save({"w": f32(2)}, tmp_path / "all" / "snapshot_1")
    with refused(AssertionError, "not a checkpoint", "snapshot_1 is one"):
        flow.load(tmp_path / "all")
    (tmp_path / "none").mkdir()
    with refused(AssertionError, "not a checkpoint"):
        flow.load(tmp_path / "none")
    flow.save({}, tmp_path / "empty")
    assert flow.load(tmp_path / "empty") == {}


def test_an_interrupted_save_is_not_loaded(tmp_path):
    flow.save({"w": f32(2)}, tmp_path / "c")
    half = tmp_path / ".snapshot_9.partial-0123456789ab"
    os.rename(tmp_path / "c", half)  # a complete save that lacks only its final rename
    with refused(AssertionError, "interrupted"):
        flow.load(half)
    assert not cf.is_complete(half)
    assert flow.train.SimpleCheckPointManager(str(tmp_path), "").list_checkpoints() == []


# --- the old class
# ---------------------------------------------------------------------------------------------------

def test_the_old_class_does_the_same_and_warns(tmp_path, capsys):
    step = trainer()
    old = flow.train.CheckPoint()
    assert "deprecated" in capsys.readouterr().out
    assert old.init() is None and default_session().running
    step(x)
    old.save(str(tmp_path / "c"))
    want = variable_values()
    assert sorted(want) == NAMES == sorted(flow.load(tmp_path / "c"))
    trainer()
    flow.train.CheckPoint().load(str(tmp_path / "c"))
    assert_same_arrays(variable_values(), want)
    for call in (old.save, old.load):
        with refused(AssertionError, "path"):
            call(3)


# --- the manager
# -----------------------------------------------------------------------------------------------------

def test_the_manager_restores_what_it_saved(tmp_path):
    root = str(tmp_path / "deep" / "snapshots")
    step = trainer()
    manager = flow.train.SimpleCheckPointManager(root)
    assert manager.latest_checkpoint() is None and manager.list_checkpoints() == []
    manager.initialize_or_restore()
    first = variable_values()
    for _ in range(3):
        step(x)
        manager.save()
    last = variable_values()
    names = manager.list_checkpoints()
    assert len(names) == 4 and names == sorted(names) and manager.latest_checkpoint() == names[-1]
    assert all(n.startswith("snapshot_2") for n in names)

    trainer()
    again = flow.train.SimpleCheckPointManager(root)
    again.initialize_or_restore()
    assert_same_arrays(variable_values(), last)
    assert again.list_checkpoints() == names, "restoring saves nothing"
    flow.load_variables(flow.checkpoint.get(os.path.join(root, names[0])))
    assert_same_arrays(variable_values(), first)


def test_only_finished_checkpoints_of_the_prefix_count(tmp_path):
    trainer()
    manager = flow.train.SimpleCheckPointManager(str(tmp_path), "model-")
    manager.save()
    [good] = os.listdir(tmp_path)
    (tmp_path / "model-9").mkdir()                             # not done
    (tmp_path / "model-8" / "snapshot_done").mkdir(parents=True)   # a folder, where a file is expected
    (tmp_path / "model-7").write_text("snapshot_done")
    (tmp_path / "other-1").mkdir()
    (tmp_path / "other-1" / "snapshot_done").touch()
    assert manager.list_checkpoints() == [good]
    (tmp_path / "model-zzz").mkdir()                           # a name chosen by the user
    (tmp_path / "model-zzz" / "snapshot_done").touch()
    assert manager.latest_checkpoint() == "model-zzz"
    manager.save()
    assert len(manager.list_checkpoints()) == 3


def test_snapshot_names_increase_when_the_clock_does_not(tmp_path, monkeypatch):
    from datetime import datetime, timedelta
    now = [datetime(2021, 6, 30, 12, 0, 0, 999_999)]

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return now[0]

    monkeypatch.setattr(flowedu.oneflow04.job.train, "datetime", Clock)
    trainer()
    manager = flow.train.SimpleCheckPointManager(str(tmp_path))
    for back in (0, 0, 3600, -5):
        now[0] -= timedelta(seconds=back)
        before = manager.latest_checkpoint()
        manager.save()
        assert before is None or manager.latest_checkpoint() > before
    assert manager.list_checkpoints()[0] == "snapshot_20210630_120000_999999"
    assert len(manager.list_checkpoints()) == 4


@pytest.mark.parametrize("arguments", [(3,), (None,), ("r", 3), ("r", "a/b"), ("r", "."), ("r", "a\\")])
def test_the_managers_arguments_are_checked(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    with refused(AssertionError, "SimpleCheckPointManager"):
        flow.train.SimpleCheckPointManager(*arguments)
    (tmp_path / "file").touch()
    with refused(AssertionError, "is a file"):
        flow.train.SimpleCheckPointManager("file")
    assert os.listdir(tmp_path) == ["file"]


# --- starting from a snapshot
# ----------------------------------------------------------------------------------------

def initial(path, name, shape=(2, 3), dtype=flow.float32, otherwise=None):
    return cf.initializer_from(path, name, otherwise)(shape, dtype, 1)


def test_initial_values_of_a_snapshot(tmp_path):
    w = f32(2, 3)
    flow.save({"w": w}, tmp_path / "c")
    np.testing.assert_array_equal(initial(tmp_path / "c", "w"), w)
    ones = flow.ones_initializer()
    assert cf.initializer_from(tmp_path / "c", "other", ones) is ones
    assert cf.initializer_from(str(tmp_path / "c"), "other", None) is None
    (tmp_path / "c" / "w" / "meta").unlink()                   # as in OneFlow 0.2
    np.testing.assert_array_equal(initial(tmp_path / "c", "w"), w)
    with refused(AssertionError, "too short", at=False):
        initial(tmp_path / "c", "w", dtype=flow.float64)


def test_a_snapshot_of_other_sizes_is_refused(tmp_path):
    flow.save({"w": f32(2, 3)}, tmp_path / "c")
    for shape, dtype in (((3, 2), flow.float32), ((6,), flow.float32), ((2, 3), flow.int32)):
        with refused(AssertionError, "variable w has another shape or dtype", "float32[2, 3]", at=False):
            initial(tmp_path / "c", "w", shape, dtype)
    with refused(AssertionError, "doesn't exist", at=False):
        initial(tmp_path / "none", "w")


def test_a_job_starts_from_a_snapshot(tmp_path):
    """Variables, optimizer state, and the step come from the snapshot; missing variables use their
    initializers.
    """
    step = trainer()
    for _ in range(3):
        step(x)
    flow.checkpoint.save(tmp_path / "c")
    want, loss = variable_values(), step(x)

    flow.clear_default_session()
    config = flow.function_config()
    config.default_initialize_with_snapshot_path(str(tmp_path / "c"))

    def body(a):
        loss = flow.layers.dense(a, 2, name="d") + flow.get_variable("new", (2,), initializer=constant(0))
        flow.optimizer.SGD(constant_rate(0.1), momentum=0).minimize(loss)
        return loss

    step = job(body, x, type="train", name="train", config=config)
    got = variable_values()
    assert not got.pop("new").any()
    assert_same_arrays(got, want)
    np.testing.assert_array_equal(step(x), loss)


# --- comparing
# -------------------------------------------------------------------------------------------------------

def test_compare_names_the_nearest(tmp_path):
    trainer()
    flow.checkpoint.save(tmp_path / "c")
    trainer(name="dense")
    text = flow.checkpoint.compare(flow.checkpoint.get(tmp_path / "c"))
    assert text.splitlines()[0] == "1 of 3 variables are loaded"
    assert "  d-weight: no such variable, ignored (the session has 'dense-weight')" in text
    assert "  dense-weight: keeps its value (there is 'd-weight')" in text
    trainer(units=5)
    text = flow.checkpoint.compare(flow.checkpoint.get(tmp_path / "c"))
    assert "  d-weight: the shape is (2, 3), not (5, 3): refused" in text
    trainer()
    assert flow.checkpoint.compare(flow.checkpoint.get(tmp_path / "c")) == "3 of 3 variables are loaded"
