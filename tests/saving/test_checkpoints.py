"""Checkpoints of a session: the saved variables, the effect of loading, and training that resumes bit for
bit.
"""
import os
import threading

import numpy as np
import pytest

import flowedu as flow
from common import constant_rate, f32, fresh_session, job, refused, run, variable_values  # noqa: F401
from flowedu.core.job.session import default_session
from flowedu.errors import CheckpointError
from flowedu.oneflow04.job import checkpoint_files

opt = flow.optimizer
normal = flow.random_normal_initializer(stddev=0.3)
images = [f32(4, 1, 6, 6, seed=i) for i in range(8)]
labels = [np.random.default_rng(i).integers(0, 3, 4).astype(np.int32) for i in range(8)]

OPTIMIZERS = {
    "sgd": lambda: opt.SGD(constant_rate(0.1), momentum=0), "momentum": lambda: opt.SGD(constant_rate(0.05)),
    "adam": lambda: opt.Adam(constant_rate(0.01)),
    "adam_corrected": lambda: opt.Adam(constant_rate(0.01), do_bias_correction=True),
    "schedule": lambda: opt.SGD(opt.CosineScheduler(0.1, 6, warmup=opt.warmup.linear(4, 0.1)))}


def net(a, extra=False):
    h = flow.layers.conv2d(a, 4, 3, padding="SAME", kernel_initializer=normal, name="conv")
    h = flow.nn.relu(flow.layers.batch_normalization(h, 1, name="bn"))
    h = flow.nn.dropout(flow.reshape(h, [a.shape[0], -1]), 0.3, seed=5, name="drop")
    if extra:
        h = flow.layers.dense(h, 5, kernel_initializer=normal, name="extra")
        return flow.layers.dense(h, 3, kernel_initializer=normal, name="head")
    return flow.layers.dense(h, 3, kernel_initializer=normal, name="out")


def session(optimizer):
    """Return (train job, predict job) in a new session, as in a restarted program."""
    flow.clear_default_session()

    def train(a, t):
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(t, net(a))
        OPTIMIZERS[optimizer]().minimize(loss)
        return loss

    return job(train, images[0], labels[0], type="train", name="train"), job(net, images[0], name="predict")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("when", ["before the first step", "after one"])
def test_training_resumes_bit_for_bit(tmp_path, optimizer, when):
    """Save after 3 of 8 steps, restart, and load: losses, predictions, and variables are equal to the last
    bit. Dropout continues with the same masks because it has a seed.
    """
    step, predict = session(optimizer)
    for i in range(3):
        step(images[i], labels[i])
    flow.checkpoint.save(str(tmp_path / "c"))
    want = [step(images[i], labels[i]) for i in range(3, 8)]
    seen, end = predict(images[0]), variable_values()

    step, predict = session(optimizer)
    if when == "after one":
        step(images[5], labels[5])
    flow.load_variables(flow.checkpoint.get(str(tmp_path / "c")))
    for i, w in zip(range(3, 8), want):
        np.testing.assert_array_equal(step(images[i], labels[i]), w)
    np.testing.assert_array_equal(predict(images[0]), seen)
    for name, value in variable_values().items():
        np.testing.assert_array_equal(value, end[name], name)


def test_saved_variables(tmp_path):
    step, _ = session("adam")
    step(images[0], labels[0])
    flow.checkpoint.save(tmp_path / "deep" / "c")
    at = tmp_path / "deep" / "c"
    trained = ["bn-beta", "bn-gamma", "conv-bias", "conv-weight", "out-bias", "out-weight"]
    want = [*trained, *[f"{n}-{s}" for n in trained for s in "mv"], "bn-moving_mean", "bn-moving_variance",
            "System-Train-TrainStep-train", "snapshot_done"]
    assert sorted(os.listdir(at)) == sorted(want) and (at / "snapshot_done").is_file()
    assert (at / "out-weight"
            / "meta").read_text("utf-8") == "shape {\n  dim: 3\n  dim: 144\n}\ndata_type: kFloat\n"
    assert (at / "out-weight" / "out").read_bytes() == variable_values()["out-weight"].tobytes()
    assert (at / "System-Train-TrainStep-train" / "out").read_bytes() == np.int64(1).tobytes()


def test_get_describes_without_loading(tmp_path):
    session("sgd")
    flow.checkpoint.save(str(tmp_path / "c"))
    got = flow.checkpoint.get(str(tmp_path / "c"))
    assert sorted(got) == sorted(variable_values())
    blob = got["conv-weight"]
    assert (blob.shape, blob.dtype) == ((4, 1, 3, 3),
                                        flow.float32) and blob.file_path.endswith("conv-weight/out")
    np.testing.assert_array_equal(blob.numpy(), variable_values()["conv-weight"])
    single = flow.checkpoint.get(str(tmp_path / "c" / "out-bias"))
    assert single.shape == (3,)


def test_an_empty_directory_is_accepted_and_a_full_one_is_refused(tmp_path):
    session("sgd")
    (tmp_path / "c").mkdir()
    flow.checkpoint.save(str(tmp_path / "c"))
    with refused(AssertionError, "Non-empty directory", str(tmp_path / "c")):
        flow.checkpoint.save(str(tmp_path / "c"))
    (tmp_path / "file").write_text("")
    with refused(AssertionError, "is a file"):
        flow.checkpoint.save(str(tmp_path / "file"))


def test_some_variables_arrays_and_blobs_of_another_checkpoint_can_be_saved(tmp_path):
    session("sgd")
    v = flow.get_all_variables()
    flow.checkpoint.save(str(tmp_path / "a"), {"w": v["out-weight"], "x": np.arange(3)})
    flow.checkpoint.save(str(tmp_path / "b"), flow.checkpoint.get(str(tmp_path / "a")))
    got = flow.checkpoint.get(str(tmp_path / "b"))
    assert sorted(got) == ["w", "x"] and got["x"].numpy().tolist() == [0, 1, 2]
    np.testing.assert_array_equal(got["w"].numpy(), v["out-weight"].numpy())


def test_handles_are_live():
    step, _ = session("momentum")
    handle = flow.get_all_variables()["out-weight"]
    before = handle.numpy()
    step(images[0], labels[0])
    after = handle.numpy()
    assert (before != after).any() and handle.shape == (3, 144) and handle.dtype is flow.float32
    after[:] = 7  # writing to the copy has no effect on the variable
    assert (handle.numpy() != 7).all()


# --- loading
# ---------------------------------------------------------------------------------------------------------

def test_checkpoints_may_be_loaded_before_the_first_call(tmp_path):
    step, predict = session("sgd")
    want = predict(images[0])
    flow.checkpoint.save(str(tmp_path / "c"))
    _, predict = session("sgd")
    flow.load_variables(flow.checkpoint.get(str(tmp_path / "c")))
    np.testing.assert_array_equal(predict(images[0]), want)


def test_arrays_can_be_loaded_and_reach_every_job():
    _, predict = session("sgd")
    flow.load_variables({"out-weight": np.zeros((3, 144), np.float32),
                         "out-bias": np.array([1, 2, 3], np.float32)})
    np.testing.assert_array_equal(predict(images[0]), np.tile([1, 2, 3], (4, 1)))


def test_the_loaded_array_is_copied():
    _, predict = session("sgd")
    bias = np.zeros(3, np.float32)
    flow.load_variables({"out-bias": bias})
    bias[:] = 9
    assert not variable_values()["out-bias"].any()


def test_unknown_names_are_ignored_and_missing_ones_keep_their_values(tmp_path):
    """Fine-tuning uses a new head on old layers; the optimizer state of the old run is ignored."""
    step, _ = session("adam")
    step(images[0], labels[0])
    flow.checkpoint.save(str(tmp_path / "c"))
    old = variable_values()
    flow.clear_default_session()
    job(lambda a: net(a, extra=True), images[0], name="eval")
    fresh = variable_values()
    flow.load_variables(flow.checkpoint.get(str(tmp_path / "c")))
    for name, value in variable_values().items():
        np.testing.assert_array_equal(value, fresh[name] if name.startswith(("extra", "head")) else old[name])


def test_ignore_mismatch_false_names_what_is_unknown():
    session("sgd")
    before = variable_values()
    with refused(RuntimeError, '"out-wieght" is not a variable name', "'out-weight'"):
        flow.load_variables({"out-bias": np.ones(3, np.float32), "out-wieght": np.zeros((3, 144))},
                            ignore_mismatch=False)
    np.testing.assert_array_equal(variable_values()["out-bias"], before["out-bias"])


@pytest.mark.parametrize("value", [np.zeros((144, 3), np.float32), np.zeros((3, 144)),
                                   np.zeros(432, np.float32), np.zeros((3, 144), np.int32), 3.0])
@pytest.mark.parametrize("ignore", [True, False])
def test_a_shape_or_dtype_that_differs_is_an_error_and_changes_nothing(value, ignore):
    session("sgd")
    before = variable_values()
    remedy = "astype(np.float32)" if np.shape(value) == (3, 144) else "had other sizes"
    with refused(AssertionError, "out-weight", "(3, 144)", "vs", remedy):
        flow.load_variables({"out-bias": np.ones(3, np.float32), "out-weight": value}, ignore_mismatch=ignore)
    for name, value in variable_values().items():
        np.testing.assert_array_equal(value, before[name])


def test_load_variables_refuses_other_types():
    session("sgd")
    for wrong in (None, "c", [np.zeros(3)]):
        with refused(AssertionError, "load_variables", "checkpoint.get"):
            flow.load_variables(wrong)


# --- damage
# ----------------------------------------------------------------------------------------------------------

def damaged(tmp_path, damage):
    step, _ = session("sgd")
    flow.checkpoint.save(str(tmp_path / "c"))
    damage(tmp_path / "c" / "out-weight")
    return variable_values()


@pytest.mark.parametrize("damage, words", [
    (lambda d: (d / "out").write_bytes((d / "out").read_bytes()[:-1]), ["too short", "1727 bytes",
                                                                        "1728 bytes"]),
    (lambda d: (d / "out").write_bytes(b""), ["too short", "0 bytes"]),
    (lambda d: (d / "out").write_bytes((d / "out").read_bytes() + b"x"), ["too long"]),
    (lambda d: (d / "meta").write_text("shape { dim: 3"), ["not the description of a variable"]),
    (lambda d: (d / "meta").write_bytes(b"\xff\x00\x80"), ["not the description of a variable"]),
    (lambda d: (d / "meta").write_text("shape {\n  dim: 3\n  dim: 144\n}\ndata_type: kComplex\n"),
     ["unknown data_type"])])
def test_a_damaged_file_is_named_and_nothing_changes(tmp_path, damage, words):
    before = damaged(tmp_path, damage)
    with refused(CheckpointError, "out-weight", *words):
        flow.load_variables(flow.checkpoint.get(str(tmp_path / "c")))
    for name, value in variable_values().items():
        np.testing.assert_array_equal(value, before[name])


def test_a_file_that_changes_between_get_and_load(tmp_path):
    before = damaged(tmp_path, lambda d: None)
    got = flow.checkpoint.get(str(tmp_path / "c"))
    (tmp_path / "c" / "out-weight" / "out").write_bytes(b"123")
    with refused(CheckpointError, "too short"):
        flow.load_variables(got)
    for name, value in variable_values().items():
        np.testing.assert_array_equal(value, before[name])


def test_missing_directories_and_sessions_without_jobs(tmp_path):
    session("sgd")
    with refused(AssertionError, "doesn't exist!"):
        flow.checkpoint.get(str(tmp_path / "nowhere"))
    flow.clear_default_session()
    for call in (lambda: flow.checkpoint.save(str(tmp_path / "c")),
                 lambda: flow.checkpoint.get(str(tmp_path)),
                 lambda: flow.load_variables({}), flow.get_all_variables):
        with refused(AssertionError, "no job"):
            call()
    assert not (tmp_path / "c").exists()


def test_a_session_that_cannot_start_saves_nothing(tmp_path):
    job(lambda a: a + f32(3), f32(3))
    with refused(TypeError):
        flow.checkpoint.save(str(tmp_path / "c"))
    assert not (tmp_path / "c").exists()


def test_dtypes_and_scalars_round_trip(tmp_path):
    def body(a):
        w = flow.get_variable("w", (2, 2), flow.double, normal)
        n = flow.get_variable("n", (), flow.int64, flow.constant_initializer(5, flow.int64))
        return flow.cast(w, flow.float), n

    import flowedu.typing as tp
    run(body, f32(2), returns=tp.Bundle[tp.Numpy])
    want = variable_values()
    flow.checkpoint.save(tmp_path / "c")
    flow.load_variables({"w": np.zeros((2, 2)), "n": np.array(0)})
    flow.load_variables(flow.checkpoint.get(tmp_path / "c"))
    assert want["n"] == 5 and variable_values()["n"] == 5
    np.testing.assert_array_equal(variable_values()["w"], want["w"])


def test_jobs_and_checkpoints_hold_the_sessions_lock(tmp_path, monkeypatch):
    """Jobs run and checkpoints are saved under one lock, so no thread trains while variables are written."""
    jobs = session("sgd")
    jobs[0](images[0], labels[0])
    jobs[1](images[0])
    lock = default_session().lock
    assert [f.compiled.program.lock is lock for f in jobs] == [True, True]

    def is_held():
        taken = []

        def try_to_take():
            taken.append(lock.acquire(blocking=False))
            if taken[0]:
                lock.release()

        other = threading.Thread(target=try_to_take)
        other.start()
        other.join()
        return not taken[0]

    held, write = [], checkpoint_files.write

    def watch(*args, **options):
        held.append(is_held())
        return write(*args, **options)

    monkeypatch.setattr(checkpoint_files, "write", watch)
    flow.checkpoint.save(str(tmp_path / "c"))
    assert held == [True] and not is_held()
