"""Parts of the job function specification that no other file tests: threads, interrupts, run-time errors, and
blob attributes. Numbers in test names are OneFlow's sections: 1 types, 2 blobs, 3 jobs and sessions, 5
watch.
"""
# ruff: noqa: UP006, UP035, B008, SIM300, E711  (types and definitions as OneFlow scripts write them)
import signal
import sys
import threading
from typing import Dict, List, Tuple

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import HANGS, constant, constant_rate, f32, fresh_session, job, refused, run  # noqa: F401
from custom_ops import own_registry  # noqa: F401
from flowedu.core.layers.context import current
from flowedu.ops.host import HostOp

X = f32(4, 3)


def mirrored():
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())
    return config


def minimize_with_sgd(loss, rate=0.1):
    flow.optimizer.SGD(constant_rate(rate), momentum=0).minimize(loss)


def weight(*shape, name="w"):
    return flow.get_variable(name, shape, initializer=flow.ones_initializer())


# --- 1 types
# ---------------------------------------------------------------------------------------------------------

def test_1_4_repeated_results_and_returned_arguments_are_separate_arrays():
    def body(x):
        y = x * 2
        return y, y, x, {"x": [x]}

    for eager in (False, True):
        flow.clear_default_session()
        flow.enable_eager_execution(eager)
        x = X.copy()
        got = job(body, x, returns=tp.Bundle[tp.Numpy])(x)
        arrays = [got[0], got[1], got[2], got[3]["x"][0]]
        for i, a in enumerate(arrays):
            a += i + 1
        assert not any(np.shares_memory(a, b) for i, a in enumerate([*arrays, x]) for b in arrays[:i])
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(arrays[1], X * 2 + 2)


def test_1_4_none_and_empty_containers_are_valid_results():
    assert job(lambda x: None, X, returns=None)(X) is None
    flow.clear_default_session()
    assert job(lambda x: [], X, returns=List[tp.Numpy])(X) == []
    flow.clear_default_session()

    @flow.global_function()
    def empty(x: tp.Numpy.Placeholder((4, 3))):
        return {"none": (), "some": [x]}

    assert empty(X).get()["none"] == ()


def test_1_5_tensor_lists_and_dynamic_blobs_in_nests():
    @flow.global_function(function_config=mirrored())
    def nest(x: tp.ListNumpy.Placeholder((4, 3)), z: tp.ListListNumpy.Placeholder((4, 3))):
        return {"a": [x, (x * 2,)], "z": z}

    lists = [[X[:1], X[:2]]]
    got = nest([X[:2]], lists).get()
    assert got["a"][0].is_dynamic and got["a"][0].parallel_num() == 1
    np.testing.assert_array_equal(got["a"][1][0].numpy_list()[0], X[:2] * 2)
    for a, b in zip(got["z"].numpy_lists()[0], lists[0], strict=True):
        np.testing.assert_array_equal(a, b)


def test_1_5_containers_of_dynamic_results():
    @flow.global_function(function_config=mirrored())
    def nest(x: tp.ListNumpy.Placeholder((4, 3))) -> Dict[str, List[tp.ListNumpy]]:
        return {"x": [x, x + 1]}

    got = nest([X[:3]])
    assert list(got) == ["x"]
    np.testing.assert_array_equal(got["x"][1][0], X[:3] + 1)
    got["x"][0][0][:] = 0
    assert X.any(), "the argument is nobody else's"


def test_1_6_callbacks_on_jobs_whose_sizes_vary():
    @flow.global_function(function_config=mirrored())
    def double(x: tp.ListNumpy.Placeholder((4, 3))) -> tp.Callback[Tuple[tp.ListNumpy, tp.ListNumpy]]:
        return x, x * 2

    got = []
    for n in (4, 1, 3):
        assert double([X[:n]])(got.append) is None
    assert [a[0].shape[0] for a, _ in got] == [4, 1, 3]
    for a, b in got:
        np.testing.assert_array_equal(b[0], a[0] * 2)


def test_1_6_an_exception_in_a_callback_reaches_the_caller_and_callbacks_must_be_callable():
    task = job(lambda x: x, X, returns=tp.Callback[tp.Numpy])
    with pytest.raises(ZeroDivisionError):
        task(X)(lambda x: 1 / 0)
    with refused(AssertionError, "callback", "takes the result"):
        task(X)(3)


def test_1_7_keywords_are_refused():
    with refused(TypeError, "positional", "job(x0)"):
        job(lambda x: x, X)(x0=X)


@pytest.mark.parametrize("body, op, line", [
    (lambda x: flow.reshape(x, [4, 3]), "Reshape_", "flow.reshape(x, [4, 3])"),
    (lambda x: x * weight(4, 3), "Multiply_", "x * weight(4, 3)"),
    (lambda x: flow.matmul(x, weight(4, 2), transpose_a=True, name="product"), "product: matmul",
     "name=\"product\""),
])
def test_1_8_sizes_that_do_not_fit_name_the_op_and_its_line(body, op, line):
    """The body is valid for the largest size, but the fed array does not fit. The job still runs
    afterwards.
    """
    @flow.global_function(function_config=mirrored())
    def task(x: tp.ListNumpy.Placeholder((4, 3))) -> tp.ListNumpy:
        return body(x)

    full = task([X])
    with refused((AssertionError, ValueError), op, line, "sizes of this call"):
        task([X[:3]])
    np.testing.assert_array_equal(task([X])[0], full[0])


def test_1_8_kernel_errors_name_the_line_of_the_body():
    @flow.global_function(function_config=mirrored())
    def task(x: tp.ListNumpy.Placeholder((4, 3)),
             y: tp.ListNumpy.Placeholder((4,), flow.int32)) -> tp.ListNumpy:
        return flow.nn.sparse_softmax_cross_entropy_with_logits(y, x, name="loss")

    with refused(RuntimeError, "loss:", "flow.nn.sparse_softmax_cross_entropy_with_logits(y, x"):
        task([X[:2]], [np.array([0, 3], np.int32)])


# --- 2 blobs
# ---------------------------------------------------------------------------------------------------------

def test_2_1_attributes():
    flow.config.cpu_device_num(2)

    @flow.global_function()
    def task(x: tp.Numpy.Placeholder((4, 3))) -> tp.Numpy:
        y, w = flow.math.relu(x, name="r"), weight(3)
        assert (y.op_name, y.blob_name, y.logical_blob_name, y.unique_name) == ("r", "out_0", "r/out_0",
                                                                                "r/out_0")
        assert (y.lbi.op_name, y.lbi.blob_name) == ("r", "out_0")
        assert (w.logical_blob_name, x.blob_name, x.op_name[:6]) == ("w/out", "out", "Input_")
        assert y.job_name == "task" and y.location.startswith("test_sections.py:") and "relu" in y.location
        assert y.parallel_size == 2 and str(y.parallel_conf) == "cpu 0:0, 0:1"
        assert y.distribute is flow.distribute.auto() and y.split_axis is None
        assert y.batch_axis == 0 and y.has_batch_axis() and w.batch_axis is None and not w.has_batch_axis()
        assert not y.is_tensor_list and not y.disable_boxing and y.with_boxing_disabled().disable_boxing

        split, same = y.with_split_distribute(1), y.with_broadcast_distribute()
        assert (split.unique_name, split.split_axis, same.unique_name) == ("r/out_0:S1", 1, "r/out_0:B")
        assert split.lbi.op_name == "r" and y.unique_name == "r/out_0", "a hint belongs to its handle"
        assert y.IdenticalTo(y) and not y.IdenticalTo(x) and not y.IdenticalTo(split) and not y.IdenticalTo(3)
        return y

    np.testing.assert_array_equal(task(X), np.maximum(X, 0))


def test_2_1_tensor_lists_have_the_tensor_list_attribute():
    @flow.global_function(function_config=mirrored())
    def task(x: tp.ListListNumpy.Placeholder((4, 3)),
             y: tp.ListNumpy.Placeholder((4, 3))) -> tp.ListListNumpy:
        assert x.is_tensor_list and not y.is_tensor_list and x.is_dynamic
        return x

    assert len(task([[X[:1], X[:2]]], [X])[0]) == 2


def test_2_2_definitions_of_arguments():
    d = flow.FixedTensorDef((3, 4), flow.int32)
    assert isinstance(d, flow.ArgBlobDef) and isinstance(d, flow.BlobDesc) and not isinstance(d, flow.BlobDef)
    assert d.op_name.startswith("Input_") and d.logical_blob_name == f"{d.op_name}/out"
    with refused(AssertionError, "distribute"):
        d.with_distribute("S0")


def test_2_2_a_hint_on_a_definition_reaches_the_blob():
    flow.config.cpu_device_num(2)

    @flow.global_function()
    def task(x=flow.FixedTensorDef((4, 4)).with_distribute(flow.distribute.split(1))):
        assert x.split_axis == 1
        return x * 2

    x = f32(4, 4)
    np.testing.assert_array_equal(task(x).get().numpy(), x * 2)


@pytest.mark.parametrize("use, word", [
    (lambda x: x // 2, "floordiv"), (lambda x: 2 // x, "floordiv"), (lambda x: 2 ** x, "flow.math.pow"),
    (abs, "abs"),
    (lambda x: +x, "plus"), (float, "return it"), (np.asarray, "watch"), (lambda x: x.__setitem__(0, 1),
                                                                          "slice_update"),
    (lambda x: X @ x, "matmul"), (range, "return it"),
])
def test_2_3_unsupported_blob_operations_name_an_alternative(use, word):
    with refused(ValueError, word):
        run(use, X)


@pytest.mark.parametrize("use", [lambda x: X + x, lambda x: x + X, lambda x: np.float32(2) * x,
                                 lambda x: X == x, lambda x: x == None, np.exp])
def test_2_3_numpy_makes_no_array_of_blobs(use):
    with pytest.raises(TypeError):
        run(use, X)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("use", [lambda x: x if x > 0 else -1 * x, lambda x: 2 if x in (x + 1, x) else x,
                                 lambda x: flow.math.equal(x, x) and x])
def test_2_3_the_truth_value_of_a_comparison_raises(use, eager):
    """In OneFlow every blob is truthy. Here comparisons raise instead, because `if` would silently take the
    wrong branch.
    """
    flow.enable_eager_execution(eager)
    with refused(ValueError, "truth value", "flow.where"):
        job(lambda x: use(x) if x else None, X)(X)


# --- 3 jobs and sessions
# ---------------------------------------------------------------------------------------------

def test_3_1_decorator_and_configuration():
    with refused(AssertionError, "function_config", "flow.function_config()"):
        flow.global_function("predict", {"default_data_type": flow.float})
    with refused(AssertionError, "not a function"):
        flow.global_function()(3)


@pytest.mark.parametrize("call, word", [
    (flow.get_all_variables, "needs the variables"), (lambda: flow.checkpoint.save("never"),
                                                      "needs the variables"),
    (flow.clear_default_session, "clear_default_session"), (lambda: flow.load_variables({}),
                                                            "needs the variables"),
])
def test_3_3_session_calls_inside_a_body_are_refused(call, word):
    """The session stays usable after the error."""
    calls = [call]

    def body(x):
        if calls:
            calls.pop()()
        return x + weight(3)

    task = job(body, X)
    with refused(NotImplementedError, word, "inside the body"):
        task(X)
    np.testing.assert_array_equal(task(X), X + 1)


def test_3_3_settings_come_too_late_in_a_body(capsys):
    def body(x):
        assert flow.config.cpu_device_num(2) is False
        return x

    np.testing.assert_array_equal(run(body, X), X)
    assert "session is running" in capsys.readouterr().out


def test_3_3_eager_bodies_do_not_nest_either():
    flow.enable_eager_execution(True)
    inner = job(lambda a: a + 1, X, name="inner")
    outer = job(lambda a: inner(a.numpy()), X, name="outer")
    with refused(NotImplementedError, "job inner", "inside the body"):
        outer(X)
    np.testing.assert_array_equal(inner(X), X + 1)


@pytest.mark.parametrize("eager", [False, True])
def test_3_3_handlers_may_call_other_jobs(eager):
    got = []
    flow.enable_eager_execution(eager)
    other = job(lambda a: a * 10, X, name="other")

    def handler(x: tp.Numpy):
        got.append(other(x))

    def body(x):
        y = x * weight(3)
        flow.watch(y, handler)
        flow.watch_diff(y, handler)
        minimize_with_sgd(y)
        return y

    one = job(body, X, type="train", name="one")
    np.testing.assert_array_equal(one(X), X)
    np.testing.assert_array_equal(got[0], X * 10)
    np.testing.assert_array_equal(got[1], np.full((4, 3), 10, np.float32))


def test_3_3_an_error_in_a_body_a_handler_or_a_python_op_leaves_the_session_usable():
    trouble = ["body", "op", "handler"]

    def raising(where):
        if trouble and trouble[0] == where:
            trouble.pop(0)
            raise LookupError(where)

    @flow.custom_op("touchy", replace=True)
    def touchy(x):
        raising("op")
        return x.copy()

    def handler(x: tp.Numpy):
        raising("handler")

    def body(x):
        with flow.scope.namespace("outer"), flow.scope.placement("cpu", "0:0"):
            w = weight(3)
            raising("body")
        y = x * w
        touched = touchy(x)
        flow.watch(touched, handler)
        minimize_with_sgd(y, 3.0)
        return w, touched

    task = job(body, X, type="train", returns=Tuple[tp.Numpy, tp.Numpy])
    for where in ("body", "op", "handler"):
        with pytest.raises(LookupError, match=where):
            task(X)
    w, touched = task(X)
    np.testing.assert_array_equal(touched, X)
    variables = flow.get_all_variables()
    assert set(variables) == {"outer-w", "System-Train-TrainStep-job"}
    assert (variables["System-Train-TrainStep-job"].numpy()[0]
            == 2), "the op's run did not count, the handler's did"
    np.testing.assert_allclose(w, 1 - X.sum(0) / 4, rtol=1e-5)


def test_3_3_a_tensor_list_goes_through_a_job_of_the_legacy_optimizer(capsys):
    config = mirrored()
    config.train.primary_lr(0.1)
    config.train.model_update_conf({"naive_conf": {}})

    @flow.global_function("train", config)
    def task(z: tp.ListListNumpy.Placeholder((4, 3)), x: tp.Numpy.Placeholder((4, 3))) -> tp.ListListNumpy:
        flow.losses.add_loss(x * weight(3))
        return z

    got = task([[X[:1], X[:2]]], X)
    np.testing.assert_array_equal(got[0][1], X[:2])
    assert "deprecated" in capsys.readouterr().out


def test_3_3_minimize_refuses_a_loss_that_is_not_a_blob():
    config = flow.function_config()
    config.train.primary_lr(0.1)
    task = job(lambda x: flow.losses.add_loss(3), X, type="train", config=config, returns=None)
    with refused(AssertionError, "not a blob", "int"):
        task(X)


def test_3_3_minimize_refuses_an_integer_loss():
    with refused(RuntimeError, "not floating point", "int32", ".minimize(loss)"):
        run(lambda x: minimize_with_sgd(flow.cast(x * weight(3), flow.int32)), X, type="train", returns=None)


def test_3_3_concurrent_steps_are_atomic():
    """Threads train concurrently: each result belongs to the arguments of its call, and every step counts
    exactly once.
    """
    n, k = 60, 3

    def body(x):
        w = weight(64, 64)
        y = x
        for _ in range(3):
            y = flow.matmul(y, w) * 0.0 + x
        minimize_with_sgd(flow.math.reduce_sum(w * 1.0), 1.0)
        return y

    example = np.zeros((64, 64), np.float32)
    task, wrong = job(body, example, type="train"), []

    def work(i):
        mine = np.full((64, 64), i, np.float32)
        wrong.extend(1 for _ in range(n) if not np.array_equal(task(mine), mine))

    # the first call compiles while the others wait
    threads = [threading.Thread(target=work, args=(i,)) for i in range(k)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(HANGS)
    assert not wrong and not any(t.is_alive() for t in threads)
    variables = flow.get_all_variables()
    assert variables["System-Train-TrainStep-job"].numpy()[0] == n * k
    np.testing.assert_array_equal(variables["w"].numpy(), np.full((64, 64), 1 - n * k, np.float32))


def test_3_3_threads_and_jobs_whose_sizes_vary():
    """Plans are compiled per size and host ops have state; concurrent threads do not interfere."""
    @flow.global_function(function_config=mirrored())
    def task(x: tp.ListNumpy.Placeholder((40, 3))) -> tp.ListNumpy:
        buffers = flow.tensor_to_tensor_buffer(x, 1)
        read = flow.tensor_buffer_to_tensor(flow.gen_tensor_buffer([1], [(3,)], [1.0]), flow.float, [3])
        return flow.tensor_buffer_to_tensor(buffers, flow.float, [3]) + read

    wrong = []

    def work(i):
        for n in range(1, 39):
            mine = np.full((n if i % 2 else 40 - n, 3), i, np.float32)
            try:
                wrong.extend([] if np.array_equal(task([mine])[0], mine + 1) else [i])
                if not np.array_equal(flow.math.relu(flow.tensor(mine)).numpy(), mine):
                    wrong.append("eager")
            except Exception as e:
                wrong.append(e)

    task([np.zeros((40, 3), np.float32)])
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(HANGS)
    sys.setswitchinterval(old)
    assert not wrong and not any(t.is_alive() for t in threads)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers of POSIX")
def test_3_3_an_interrupted_step_is_complete_or_not_started():
    """After Ctrl-C at any moment, the weights are those of the step that the counter shows."""
    size = 300

    def body(x):
        w = flow.get_variable("w", (size, size), initializer=flow.zeros_initializer())
        y = x
        for _ in range(3):
            y = flow.matmul(y, y) * 0.0 + x
        minimize_with_sgd(w + y * 0.0, float(size * size))           # w equals minus the step number
        return w

    x = np.ones((size, size), np.float32)
    task = job(body, x, type="train")
    task(x)
    old, caught = signal.signal(signal.SIGALRM, signal.default_int_handler), 0
    try:
        for i in range(20):
            try:
                # repeated, because Python may drop a signal
                signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.0003 * i, 30)
                while True:
                    task(x)
            except KeyboardInterrupt:
                caught += 1
            variables = flow.get_all_variables()
            assert variables["w"].numpy()[0, 0] == -variables["System-Train-TrainStep-job"].numpy()[0]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert caught == 20


def test_3_3_clearing_ends_the_threads_that_read_ahead():
    @flow.global_function()
    def task() -> tp.Numpy:
        buffers = flow.gen_tensor_buffer([2], [(2, 1), (2, 1)], [0.0, 1.0])
        return flow.tensor_buffer_to_tensor(buffers, flow.float, [2, 1])

    def reading():
        return [t for t in threading.enumerate() if "prefetch" in t.name]

    before = len(reading())
    task(), task()
    assert len(reading()) == before + 1
    flow.clear_default_session()
    assert len(reading()) == before


def test_3_3_errors_of_the_thread_that_reads_ahead_name_the_line_of_the_body(tmp_path):
    with flow.data.ofrecord_writer(tmp_path) as w:
        w.write({"x": np.float32([1, 2])})

    @flow.global_function()
    def task() -> tp.Numpy:
        records = flow.data.ofrecord_reader(str(tmp_path), batch_size=1)
        return flow.data.OFRecordRawDecoder(records, "y", (2,), flow.float, name="decoded")

    for _ in range(2):
        with refused(RuntimeError, 'flow.data.OFRecordRawDecoder(records, "y"'):
            task()


@pytest.mark.parametrize("ahead", [True, False])
def test_3_3_python_exceptions_in_a_host_op_name_its_line(ahead, monkeypatch):
    def body(x):
        made = flow.gen_tensor_buffer([1], [(2,)], [0.0]) if ahead else flow.tensor_to_tensor_buffer(x, 1)
        return flow.tensor_buffer_to_tensor(made, flow.float32, [2] if ahead else [3], name="taken")

    task = job(body, X)
    task(X)
    node = next(c.nodes[-1] for c in task.context.calls if c.labels == ("taken",))
    run = HostOp.run
    monkeypatch.setattr(HostOp, "run", lambda op, *_: 1 / 0 if op is node.op else run(op, *_))
    with pytest.raises(ZeroDivisionError) as info:
        for _ in range(9):                             # items that were read ahead come first
            task(X)
    assert "made at test_sections.py:" in info.value.__notes__[0] and "taken" in info.value.__notes__[0]


@pytest.mark.parametrize("wrong", [[1.0, 2.0], "x", None, 3])
def test_3_4_host_op_errors_name_the_accepted_types(wrong):
    with refused(TypeError, "tensor_to_tensor_buffer", type(wrong).__name__):
        flow.tensor_to_tensor_buffer(wrong, 1)


def test_3_4_eager_arguments_are_checked_in_any_nesting():
    flow.enable_eager_execution(True)

    @flow.global_function(function_config=mirrored())
    def task(z: tp.ListListNumpy.Placeholder((4, 3)), x: tp.Numpy.Placeholder((4, 3))) -> tp.Numpy:
        return x

    with refused(TypeError, "float64", "astype(np.float32)"):
        task([[X[:1], X[:2]]], X.astype(np.float64))
    with refused(TypeError, "float64"):
        task([[X[:1], X[:2].astype(np.float64)]], X)
    np.testing.assert_array_equal(task([[X[:1], X[:2]]], X), X)


def test_3_3_contexts_belong_to_their_thread():
    """While one thread runs a job body, another thread computes eagerly."""
    found = []

    def elsewhere():
        found.append(current().in_job)
        found.append(flow.math.relu(flow.tensor([1.0, -1.0]) + 1).numpy().tolist())

    def body(x):
        t = threading.Thread(target=elsewhere)
        t.start()
        t.join()
        return x

    run(body, X)
    assert found == [False, [2.0, 0.0]]


def test_3_4_eager_jobs_return_the_same_as_compiled_jobs():
    flow.enable_eager_execution(True)

    @flow.global_function()
    def task() -> tp.Numpy:
        return flow.gen_tensor_buffer([2], [(2, 1), (2, 1)], [0.0, 1.0])

    with refused(NotImplementedError, "tensor_buffer", "tensor_buffer_to_tensor"):
        task()


# --- 5 watch
# ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("eager", [False, True])
def test_5_arguments_variables_constants_and_host_results_can_be_watched(eager, capsys):
    flow.enable_eager_execution(eager)
    seen = []

    def see(name):
        def handler(x: tp.Numpy):
            seen.append((name, x))
        return handler

    @flow.global_function("train")
    def task(x: tp.Numpy.Placeholder((4, 3))) -> None:
        flow.watch(x, see("argument"))
        c = flow.constant(2.0, flow.float, (3,))
        flow.watch(c, see("constant"))
        w = weight(3)
        flow.watch(w, see("variable"))
        h = flow.tensor_buffer_to_tensor(flow.gen_tensor_buffer([2], [(2,), (2,)], [0.0, 1.0]),
                                         flow.float, [2])
        flow.watch(h, see("host"))
        flow.watch(h, "prompt")
        y = x * w * c
        minimize_with_sgd(y)
        flow.watch(y, see("y")), flow.watch(y, see("y again"))

    task(X)
    assert [n for n, _ in seen] == ["argument", "constant", "variable", "host", "y", "y again"]
    for (_, got), want in zip(seen, [X, [2, 2, 2], [1, 1, 1], [[0, 0], [1, 1]], X * 2, X * 2], strict=True):
        np.testing.assert_array_equal(got, want)
    assert capsys.readouterr().out == "prompt\n[[0. 0.]\n [1. 1.]]\n"
