"""Job functions as users call them: the decorator, arguments, results, futures, callbacks, and the
session.
"""
# ruff: noqa: UP006, UP035  (scripts write Tuple, List and Dict of typing)
import copy
import functools
import pickle
import warnings
from typing import Dict, List, Tuple

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant, constant_rate, f32, fresh_session, job, refused, run  # noqa: F401
from flowedu.errors import CheckError, JobBuildAndInferError, UnsupportedError

X = tp.Numpy.Placeholder((2, 3))
x = f32(2, 3)


# --- the decorator
# ---------------------------------------------------------------------------------------------------

def test_a_job_keeps_the_name_and_docstring_of_its_function():
    @flow.global_function()
    def double(a: X) -> tp.Numpy:
        """Twice a."""
        return a * 2

    assert (double.__name__, double.__doc__, double.type) == ("double", "Twice a.", "predict")
    assert double.__oneflow_function_signature__.names == ("a",)
    np.testing.assert_array_equal(double(x), x * 2)


def test_type_and_config_may_be_positional():
    config = flow.function_config()
    config.default_data_type(flow.float)
    made = job(lambda a: a, x, type="predict", config=config)
    config.enable_inplace(False)
    assert made.config.values == {"default_data_type": flow.float}, "what is set later is for later jobs"
    assert flow.ExecutionConfig is flow.FunctionConfig is flow.function_config


def test_a_config_as_the_only_argument_is_taken_with_a_hint(capsys):
    @flow.global_function(flow.function_config())
    def same(a: X) -> tp.Numpy:
        return a

    assert "second argument" in capsys.readouterr().out
    np.testing.assert_array_equal(same(x), x)


@pytest.mark.parametrize("type", ["eval", "", "Train", None, 3])
def test_the_type_is_train_or_predict(type):
    with refused(AssertionError, '"train" or "predict"', fix=False):
        flow.global_function(type=type)


def test_settings_are_calls_and_unknown_ones_are_refused():
    config = flow.FunctionConfig()
    for name, value in (("default_data_type", flow.float), ("enable_inplace", False),
                        ("concurrency_width", 4)):
        assert getattr(config, name)(value) is None
    config.enable_cudnn()
    assert config.values == {"default_data_type": flow.float, "enable_inplace": False, "concurrency_width": 4,
                             "enable_cudnn": True}
    with refused(AssertionError, "default_data_type", fix=False):
        config.default_datatype(flow.float)


def test_one_config_serves_many_jobs():
    config = flow.function_config()
    config.default_initializer_conf(flow.ones_initializer())
    a = job(lambda t: t * flow.get_variable("w", (3,)), x, config=config, name="a")
    b = job(lambda t: t + flow.get_variable("w", (3,)), x, config=config, name="b")
    np.testing.assert_array_equal(a(x), x)
    np.testing.assert_array_equal(b(x), x + 1)


@pytest.mark.parametrize("off", ["simplify", "cse", "dead", "fuse", "inplace", "reuse"])
def test_a_pass_can_be_switched_off(off):
    config = flow.function_config()
    config.without_passes(off)

    def body(a):
        return flow.math.tanh(flow.math.relu(a * 2 + 1)) + flow.math.relu(a * 2 + 1)

    np.testing.assert_array_equal(run(body, x, config=config), run(body, x))


# --- arguments of a call
# ---------------------------------------------------------------------------------------------

def test_arguments_are_cast_copied_and_may_be_strided():
    same = job(lambda a: a, x)
    for a in (x.astype(np.float64), x.astype(">f4"), np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2],
              x.view(np.matrix)):
        got = same(a)
        assert type(got) is np.ndarray and got.dtype == np.float32
        np.testing.assert_array_equal(got, x)
    a = x.copy()
    got = same(a)
    a[:] = 9
    np.testing.assert_array_equal(got, x)


def test_floats_fed_to_an_integer_placeholder_are_truncated():
    same = job(lambda a: a, np.zeros(4, np.int32))
    np.testing.assert_array_equal(same(np.array([1.9, -1.9, 0.5, 7.0])), [1, -1, 0, 7])


def test_an_unaligned_array_is_no_trouble():
    raw = np.zeros(x.nbytes + 1, np.uint8)
    raw[1:] = x.view(np.uint8).ravel()
    a = raw[1:].view(np.float32).reshape(x.shape)
    assert not a.flags.aligned
    np.testing.assert_array_equal(run(lambda t: t + 1, a), x + 1)


def test_tuples_of_placeholders_nest():
    @flow.global_function()
    def mix(a: Tuple[X, Tuple[X, tp.Numpy.Placeholder((3,))]], b: Tuple[X]) -> Tuple[tp.Numpy, tp.Numpy]:
        p, (q, r) = a
        return p - q + r, b[0]

    y, z, r = f32(2, 3, seed=1), f32(2, 3, seed=2), f32(3, seed=3)
    first, second = mix((x, [y, r]), (z,))
    np.testing.assert_allclose(first, x - y + r, rtol=1e-6)
    np.testing.assert_array_equal(second, z)
    with refused(AssertionError, "mix", "a tuple of 2"):
        mix((x, y, r), (z,))


def test_placeholders_as_default_values():
    @flow.global_function()
    def old(a=flow.FixedTensorDef((2, 3)), b={"n": flow.FixedTensorDef((3,))}) -> tp.Numpy:  # noqa: B006,B008
        return a + b["n"]

    np.testing.assert_array_equal(old(x, {"n": np.ones(3, np.float32)}), x + 1)


def test_a_job_may_have_no_arguments():
    @flow.global_function()
    def five() -> tp.Numpy:
        return flow.constant(5, flow.float32, (2,))

    np.testing.assert_array_equal(five(), [5, 5])


# --- results of a call
# -----------------------------------------------------------------------------------------------

def test_containers_are_returned_as_annotated():
    @flow.global_function()
    def all_kinds(a: X) -> Tuple[tp.Numpy, List[tp.Numpy], Dict[str, tp.ListNumpy]]:
        return a, [a + 1, a + 2], {"n": a * 2}

    first, listed, named = all_kinds(x)
    assert type(listed) is list and type(named) is dict and type(named["n"]) is list and len(named["n"]) == 1
    for got, want in ((first, x), (listed[0], x + 1), (listed[1], x + 2), (named["n"][0], x * 2)):
        assert type(got) is np.ndarray
        np.testing.assert_array_equal(got, want)


def test_a_bundle_keeps_any_nesting():
    got = run(lambda a: {"a": [a, (a + 1,)]}, x, returns=tp.Bundle[tp.Numpy])
    assert type(got["a"][1]) is tuple
    np.testing.assert_array_equal(got["a"][1][0], x + 1)


def test_results_belong_to_the_caller():
    """A blob returned twice, a watched blob, an input: every returned array is the caller's own copy in every
    run.
    """
    seen = []

    def body(a):
        b = a * 2
        flow.watch(b, spoil)
        flow.watch(b, seen.append)
        return b, b, a

    def spoil(array: tp.Numpy):
        array[:] = -1

    double = job(body, x, returns=Tuple[tp.Numpy, tp.Numpy, tp.Numpy])
    for _ in range(2):
        p, q, a = double(x)
        p[:] = 7
        np.testing.assert_array_equal(q, x * 2)
        np.testing.assert_array_equal(seen[-1].numpy(), x * 2)
        a[:] = 7
    np.testing.assert_array_equal(x, f32(2, 3))


def test_without_annotation_a_future_of_local_blobs():
    @flow.global_function()
    def free(a: X):
        return {"y": [a * 2]}

    future = free(x)
    local = future.get()["y"][0]
    assert isinstance(local, flow.LocalBlob)
    np.testing.assert_array_equal(local.numpy(), x * 2)
    with refused(AssertionError, "taken"):
        future.get()
    got = []
    assert free(x).async_get(got.append) is None
    np.testing.assert_array_equal(got[0]["y"][0].numpy(), x * 2)


def test_a_local_blob_behaves_like_its_array():
    local = flow.LocalBlob(x.copy())
    assert local.shape == (2, 3) and local.mean() == x.mean() and len(local) == 2 and not local.is_dynamic
    assert local.parallel_num() == 1 and len(local.numpy_list()) == 1
    for got, want in ((local + 1, x + 1), (1 - local, 1 - x), (local * local, x * x), (-local, -x),
                      (local[0], x[0]), (np.exp(local), np.exp(x)), (local > 0, x > 0)):
        np.testing.assert_array_equal(got, want)
    assert repr(local) == repr(x)
    assert [row.tolist() for row in local] == x.tolist()
    assert not flow.LocalBlob(np.zeros(1)) and float(flow.LocalBlob(np.ones(1)).sum()) == 1.0
    assert f"{flow.LocalBlob(np.array(0.5)):.2f}" == "0.50"
    local[0] = 1
    assert (local[0] == 1).all()
    for twin in (copy.copy(local), pickle.loads(pickle.dumps(local))):
        np.testing.assert_array_equal(twin.numpy(), local.numpy())
    with pytest.raises(AssertionError):
        local.numpy(1)


def test_none_is_returned_immediately_with_or_without_annotation():
    seen = []

    @flow.global_function()
    def annotated(a: X) -> None:
        flow.watch(a, seen.append)

    @flow.global_function()
    def bare(a: X):
        flow.watch(a, seen.append)

    assert annotated(x) is None and bare(x) is None
    flow.sync_default_session()
    assert len(seen) == 2


def test_callbacks_get_one_value_in_call_order():
    @flow.global_function()
    def pair(a: X) -> tp.Callback[Tuple[tp.Numpy, tp.ListNumpy]]:
        return a, a * 2

    got = []
    for i in range(5):
        assert pair(x + i)(got.append) is None
        assert len(got) == i + 1
    pair(x)                                         # without a callback the result is dropped
    assert type(got[0]) is tuple and type(got[0][1]) is list
    for i, (a, b) in enumerate(got):
        np.testing.assert_array_equal(a, x + i)
        np.testing.assert_array_equal(b[0], (x + i) * 2)
    with pytest.raises(ZeroDivisionError):
        pair(x)(lambda value: 1 / 0)


# --- compiling: annotations against what the body returns
# ------------------------------------------------------------

@pytest.mark.parametrize("returns, body, error", [
    (None, lambda a: a, AssertionError), (tp.Numpy, lambda a: None, AssertionError),
    (tp.Numpy, lambda a: 3.0, AssertionError), (tp.Numpy, lambda a: x, AssertionError),
    (Tuple[tp.Numpy, tp.Numpy], lambda a: [a, a], AssertionError), (List[tp.Numpy], lambda a: (a, a),
                                                                    AssertionError),
    (Tuple[tp.Numpy], lambda a: (a, a), AssertionError), (Dict[str, tp.Numpy], lambda a: {1: a},
                                                          AssertionError),
    (tp.Bundle[tp.Numpy], lambda a: [a, 3], NotImplementedError)])
def test_a_body_must_return_the_annotated_types(returns, body, error):
    with refused(error, "job"):
        run(body, x, returns=returns)


def test_a_job_without_annotation_returns_only_blobs():
    @flow.global_function()
    def number(a: X):
        return 3

    with refused(NotImplementedError, "list/tuple/dict"):
        number(x)


def test_errors_of_mirrored_placeholders_name_the_missing_setting():
    @flow.global_function()
    def mirrored(a: tp.ListNumpy.Placeholder((2, 3))) -> tp.ListNumpy:
        return a

    with refused(AssertionError, "mirrored_view"):
        mirrored([x])


# --- the session
# -----------------------------------------------------------------------------------------------------

def test_all_bodies_run_once_in_order_at_the_first_call_of_any():
    ran = []
    jobs = [job(functools.partial(lambda n, a: (ran.append(n), a + n)[1], n), x, name=f"job{n}")
            for n in range(3)]
    assert ran == []
    np.testing.assert_array_equal(jobs[1](x), x + 1)
    assert ran == [0, 1, 2]
    jobs[0](x), jobs[1](x)
    assert ran == [0, 1, 2]


@pytest.mark.parametrize("start", [flow.get_all_variables, lambda: flow.load_variables({})])
def test_checkpoint_functions_start_the_session(start):
    ran = []
    job(lambda a: (ran.append(1), a)[1], x)
    start()
    assert ran == [1]


def test_syncing_and_configuring_do_not_start_the_session():
    ran = []
    job(lambda a: (ran.append(1), a)[1], x)
    flow.sync_default_session()
    flow.config.cpu_device_num(1)
    assert ran == []


def test_a_later_definition_of_a_name_replaces_the_first_until_the_session_runs():
    first = job(lambda a: a + 1, x)
    second = job(lambda a: a + 2, x)
    np.testing.assert_array_equal(second(x), x + 2)
    with refused(AssertionError, "current session"):
        first(x)
    with refused(NotImplementedError, "clear_default_session", "already runs job"):
        job(lambda a: a, x, name="late")


def test_a_body_that_fails_leaves_the_session_open():
    """A user may fix the body, for instance in a notebook, and continue; no state of the failed attempt
    remains.
    """
    good = job(lambda a: flow.layers.dense(a, 2, name="d"), x, name="good")
    bad = job(lambda a: flow.layers.dense(a, 2, name="never", activation=1 / 0), x, name="bad")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as caught:
            bad(x)
        assert "in the body of job bad" in caught.value.__notes__
    with pytest.raises(ZeroDivisionError):
        flow.get_all_variables()
    mended = job(lambda a: flow.layers.dense(a, 5, name="e"), x, name="bad")
    assert good(x).shape == (2, 2) and mended(x).shape == (2, 5)
    assert sorted(flow.get_all_variables()) == ["d-bias", "d-weight", "e-bias", "e-weight"]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_failed_body_does_not_affect_other_jobs(place):
    """The failed job is skipped with one warning, raises when it is called, and may be redefined while other
    jobs run.
    """
    def fails(a):
        flow.layers.dense(a, 3, name="never")
        flow.layers.dense(a, 2, name="d")
        raise KeyError("mine")

    bodies = [(lambda a: flow.layers.dense(a, 2, name="d"), "one"), (lambda a: a * 2, "two")]
    bodies.insert(place, (fails, "bad"))
    jobs = {name: job(body, x, name=name) for body, name in bodies}
    with pytest.warns(UserWarning, match="job bad is left out, for its body raised KeyError: 'mine'"):
        first = jobs["one"](x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(jobs["one"](x), first)
        np.testing.assert_array_equal(jobs["two"](x), x * 2)
        assert sorted(flow.get_all_variables()) == ["d-bias", "d-weight"]
        for _ in range(2):
            with pytest.raises(KeyError) as caught:
                jobs["bad"](x)
            assert caught.value.__notes__ == ["in the body of job bad"]
        again = job(fails, x, name="bad")
        with pytest.raises(KeyError):
            again(x)
        mended = job(lambda a: flow.layers.dense(a, 2, name="d") + flow.layers.dense(a, 2, name="e"), x,
                     name="bad")
        flow.load_variables({"e-weight": np.zeros((2, 3), np.float32), "e-bias": np.ones(2, np.float32)})
        np.testing.assert_allclose(mended(x), first + 1, rtol=1e-6)
        assert sorted(flow.get_all_variables()) == ["d-bias", "d-weight", "e-bias", "e-weight"]
        np.testing.assert_array_equal(jobs["one"](x), first)
        with refused(NotImplementedError, "clear_default_session"):
            job(lambda a: a, x, name="bad")           # the redefined job now runs with the others


def test_an_initializer_that_fails_leaves_no_variables():
    def fails(shape, dtype, seed):
        raise ZeroDivisionError

    def body(a):
        return a * flow.get_variable("first", (3,),
                                     initializer=constant(1)) * flow.get_variable("second", (3,),
                                                                                  initializer=fails)

    broken = job(body, x)
    with pytest.raises(ZeroDivisionError):
        broken(x)
    mended = job(lambda a: a * flow.get_variable("third", (3,), initializer=constant(2)), x)
    np.testing.assert_array_equal(mended(x), x * 2)
    assert list(flow.get_all_variables()) == ["third"]


def test_clearing_forgets_everything():
    first = job(lambda a: flow.layers.dense(a, 2), x)
    first(x)
    flow.config.cpu_device_num(1)
    flow.clear_default_session()
    with refused(AssertionError, "current session"):
        first(x)
    with refused(AssertionError, "no job"):
        flow.get_all_variables()
    second = job(lambda a: flow.layers.dense(a, 3), x)          # the same names with another shape
    assert second(x).shape == (2, 3)


def test_settings_come_too_late_once_the_session_runs(capsys):
    job(lambda a: a, x)(x)
    capsys.readouterr()
    assert not flow.config.cpu_device_num(2)
    assert "session is running" in capsys.readouterr().out


def test_jobs_do_not_nest():
    inner = job(lambda a: a, x, name="inner")
    outer = job(lambda a: inner(a), x, name="outer")
    with refused(NotImplementedError, "inside the body"):
        outer(x)
    flow.clear_default_session()
    outer = job(lambda a: job(lambda b: b, x, name="inner"), x, name="outer")
    with refused(NotImplementedError, "inside the body"):
        outer(x)


def test_blobs_stay_in_their_job():
    kept = []
    job(lambda a: (kept.append(a * 2), a)[1], x, name="one")
    two = job(lambda a: a + kept[0], x, name="two")
    with refused(AssertionError, "a blob of job one is used in job two"):
        two(x)
    with refused(AssertionError, "outside any job"):
        flow.math.relu(kept[0])
    flow.clear_default_session()
    job(lambda a: (kept.append(a), a)[1], x, name="one")
    two = job(lambda a: kept[-1], x, name="two")
    with refused(AssertionError, "a blob of job one is used in job two"):
        two(x)


def test_python_in_a_body_is_frozen_at_compile():
    scale = [2.0]
    scaled = job(lambda a: a * scale[0], x)
    np.testing.assert_array_equal(scaled(x), x * 2)
    scale[0] = 100.0
    np.testing.assert_array_equal(scaled(x), x * 2)


def test_the_number_of_threads_may_change_between_calls():
    big = f32(64, 300)
    weights = flow.random_normal_initializer(stddev=0.1)

    def body(a):
        y = flow.layers.dense(a, 200, activation=flow.nn.relu, kernel_initializer=weights)
        flow.optimizer.SGD(constant_rate(0.1)).minimize(y)
        return y

    flow.random.seed(1)
    want = []
    step = job(body, big, type="train")
    want = [step(big) for _ in range(4)]
    flow.clear_default_session()
    step = job(body, big, type="train")
    for n, w in zip((1, 2, 1, 2), want):
        flow.set_num_threads(n)
        np.testing.assert_allclose(step(big), w, rtol=1e-5, atol=1e-6)


def test_the_plan_can_be_shown():
    text = job(lambda a: flow.layers.dense(a, 4, activation=flow.nn.relu, name="d"), x).show()
    assert "d-matmul" in text and "arena" in text


def test_errors_of_the_front_end_are_one_family():
    for error in (CheckError, UnsupportedError, JobBuildAndInferError):
        assert issubclass(error, flow.errors.FlowError)
    assert (flow.JobBuildAndInferError is JobBuildAndInferError and issubclass(JobBuildAndInferError,
                                                                               RuntimeError))
