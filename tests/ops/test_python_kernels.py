"""Python kernels: exceptions, return values, threads, interrupts, leaks, and errors of registration."""
import gc
import signal
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import flowedu as flow
from common import HANGS, constant_rate, f32, fresh_session, job, refused, run  # noqa: F401
from custom_ops import affine, cube, make_tensors, own_registry  # noqa: F401
from flowedu.core.ops.define import REGISTRY
from flowedu.errors import ArgumentError, DTypeError, KernelError, ShapeError, UnsupportedError
from flowedu.ops.custom.record import CUSTOM

# --- exceptions
# -------------------------------------------------------------------------------------------------------

class Boom(Exception):
    pass


def failing(when):
    def forward(x):
        if when == "forward":
            raise Boom("no forward today")
        return x * 2

    def backward(dy, x):
        raise Boom("no backward today")

    return flow.custom_op("failing", forward, backward, replace=True)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("when", ["forward", "backward"])
def test_exceptions_reach_the_caller(when, threads):
    """The original exception arrives with its traceback and a note; no variable is updated, and the job can
    be called again.
    """
    flow.set_num_threads(threads)
    op = failing(when)

    def body(x):
        w = flow.get_variable("w", (300, 300), initializer=flow.ones_initializer())
        loss = flow.math.reduce_sum(op(flow.matmul(flow.math.tanh(x), w)))
        flow.optimizer.SGD(constant_rate(1.0), momentum=0).minimize(loss)
        return loss

    x = f32(300, 300)
    train = job(body, x, type="train")
    for _ in range(2):
        with pytest.raises(Boom, match=f"no {when} today") as caught:
            train(x)
        assert "of job job, made at test_python_kernels.py:" in caught.value.__notes__[0]
        assert caught.traceback[-1].name == when
        np.testing.assert_array_equal(flow.get_all_variables()["w"].numpy(), np.ones((300, 300)))
    t, = make_tensors(x)
    with pytest.raises(Boom) as caught:
        op(t).sum().backward()
    op_name = "failing_grad" if when == "backward" else "failing"
    assert f"in op {op_name}, called at test_python_kernels.py:" in caught.value.__notes__[0]


def test_the_result_of_forward_is_checked():
    x = flow.tensor(f32(2, 3))
    for result, error, words in [
            (lambda x: x.astype(np.float64), DTypeError, ("forward returned another dtype for y",
                                                          "float32[2, 3]", "float64[2, 3]")),
            (lambda x: x[0], ShapeError, ("forward returned another shape for y", "float32[2, 3]",
                                          "float32[3]")),
            (lambda x: (x, x), ShapeError, ("forward returned 2 arrays", "1: y")),
            (lambda x: None, DTypeError, ("something else than an array for y", "NoneType")),
            (lambda x: flow.tensor(x.copy()), DTypeError, ("Tensor", "return y.numpy()"))]:
        op = flow.custom_op("wrong", result, replace=True)
        with refused(error, "wrong: ", *words):
            op(x)
        with refused(error, "wrong: ", *words):
            run(op, f32(2, 3))


def test_the_result_of_backward_is_checked():
    for result, error, words in [
            (lambda dy: (dy, dy[0]), ShapeError, ("backward returned another shape for dw", "[2, 3]")),
            (lambda dy: dy, ShapeError, ("backward returned 1 arrays", "2: dx, dw")),
            (lambda dy: (dy, dy, dy), ShapeError, ("backward returned 3 arrays", "2: dx, dw"))]:
        op = flow.custom_op("wrong", lambda x, w: x * w, result, replace=True)
        x, w = make_tensors(np.ones((2, 3)), np.ones((2, 3)))
        with refused(error, "wrong: ", *words):
            op(x, w).sum().backward()


def test_inputs_are_read_only_and_temporary():
    """NumPy raises if a kernel writes to an input; flowedu raises if a kernel keeps one, because the memory
    is reused.
    """
    kept, errors = [], []

    def spoil(x):
        x[0] = 1
        return x

    def keep(x):
        kept.append(x[1:])
        return x * 2

    def log(x):
        try:
            return x / "two"
        except TypeError as error:      # the traceback holds the frame that holds x, which is not read again
            errors.append(error)
        return x * 2

    def cycle(x):
        def walk(n):                    # a cycle that holds x until it is garbage-collected
            return x if n == 0 else walk(n - 1)
        return walk(3) * 2

    x = f32(4)
    for call in (lambda op: op(flow.tensor(x)), lambda op: run(op, x)):
        with pytest.raises(ValueError, match="read-only") as caught:
            call(flow.custom_op("spoil", spoil, replace=True))
        assert "change a copy: x = x.copy()" in caught.value.__notes__[0]
        with refused(KernelError, "keep: forward kept its input x", "x.copy()"):
            call(flow.custom_op("keep", keep, replace=True))
        for fine in (cycle, log):
            got = call(flow.custom_op("fine", fine, replace=True))
            np.testing.assert_array_equal(got if isinstance(got, np.ndarray) else got.numpy(), x * 2)
        # the memory is still allocated, with arbitrary contents
        np.testing.assert_array_equal(kept.pop(), x[1:])


def test_an_interrupt_in_a_kernel():
    """Ctrl-C while a Python kernel runs raises KeyboardInterrupt, and the next call works."""
    state = {"interrupt": True}

    @flow.custom_op("slow")
    def slow(x):
        if state["interrupt"]:
            signal.raise_signal(signal.SIGINT)
        return x + 1

    x = f32(3)
    task = job(slow, x)
    for call in (lambda: slow(flow.tensor(x)), lambda: task(x)):
        state["interrupt"] = True
        with pytest.raises(KeyboardInterrupt):
            call()
        state["interrupt"] = False
        call()


# --- threads
# ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("n", [2, 3])
def test_python_kernels_between_multithreaded_kernels(n):
    """The other threads of the team wait for the Python kernel, which may use flowedu itself."""
    flow.set_num_threads(n)

    @flow.custom_op("inner")
    def inner(x):
        return flow.matmul(flow.tensor(x), flow.tensor(x)).numpy()

    x = f32(256, 256)
    got = run(lambda a: flow.math.tanh(inner(flow.math.tanh(a)) * 0.1), x)
    t = np.tanh(x)
    np.testing.assert_allclose(got, np.tanh(t @ t * 0.1), atol=1e-5)


def test_two_threads_at_once():
    """Each with its own job, both with the same job, and eagerly: no thread receives arrays of another."""
    gate = threading.Barrier(2, timeout=HANGS)

    @flow.custom_op("meet")
    def meet(x):
        before = x.copy()
        flow.tensor(before)
        assert (x == before).all()
        return x + 1

    x, wrong = f32(50), []
    own = [job(meet, x, name=f"job{i}") for i in range(2)]
    shared = job(lambda a: meet(a * 2), x, name="shared")
    own[0](x)

    def work(i):
        try:
            gate.wait()
            for k in range(100):
                np.testing.assert_array_equal(own[i](x + k), x + k + 1)
                np.testing.assert_array_equal(shared(x * i), x * i * 2 + 1)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(HANGS)
    assert not wrong and not any(t.is_alive() for t in threads)


def test_a_job_inside_its_own_kernel():
    tasks = []

    @flow.custom_op("again")
    def again(x):
        return tasks[0](x.copy())

    tasks.append(job(again, f32(3)))
    with refused(UnsupportedError, "was called while it runs"):
        tasks[0](f32(3))


def test_kernels_of_two_jobs_that_call_each_other():
    """Called from two threads, they raise instead of deadlocking."""
    tasks = {}
    wrong = []
    met = set()
    gate = threading.Barrier(2, timeout=HANGS)

    def calling(name, other):
        @flow.custom_op(name)
        def op(x):
            if name not in met:
                met.add(name)
                gate.wait()                # now both jobs run
            try:
                tasks[other](x.copy())
            except UnsupportedError as error:
                wrong.append(error)
            return x * 2
        return op

    x = f32(3)
    for name, other in (("one", "two"), ("two", "one")):
        tasks[name] = job(calling(name, other), x, name=name)
    flow.get_all_variables()                                             # compiles both
    threads = [threading.Thread(target=tasks[name], args=(x,)) for name in tasks]
    for t in threads:
        t.start()
    for t in threads:
        t.join(HANGS)
    assert not any(t.is_alive() for t in threads) and wrong


# --- passes, leaks
# ----------------------------------------------------------------------------------------------------

def test_pure_calls_are_merged_and_folded_random_ones_are_not():
    counts = {"pure": 0, "noise": 0}

    def count(name):
        def forward(x):
            counts[name] += 1
            return x + counts[name]
        return flow.custom_op(name, forward, random=name == "noise")

    for name in counts:
        op, x = count(name), f32(2)
        flow.clear_default_session()
        task = job(lambda a, op=op: op(a) + op(a) + op(flow.constant(1.0, flow.float32, (2,))), x)
        for _ in range(3):
            task(x)
    assert counts == {"pure": 1 + 3, "noise": 9}


def test_python_kernels_leak_nothing():
    op, x = affine(), f32(6, 12)
    w, b = f32(12), f32(12, seed=1)

    def body(x):
        w, b = (flow.get_variable(n, (12,), initializer=flow.ones_initializer()) for n in "wb")
        loss = op(x, w, b)
        flow.optimizer.SGD(constant_rate(0.0), momentum=0).minimize(loss)
        return loss

    train = job(body, x, type="train")
    bad = failing("forward")

    def rounds(n):
        for _ in range(n):
            train(x)
            ts = make_tensors(x, w, b)
            op(*ts).sum().backward()
            with pytest.raises(Boom):
                bad(ts[0])

    rounds(5)
    gc.collect()
    live, refs = flow.memory_stats()["live"], sys.getrefcount(op.op.ref)
    tracemalloc.start()
    try:
        start = tracemalloc.get_traced_memory()[0]
        rounds(1000)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    after = flow.memory_stats()["live"], sys.getrefcount(op.op.ref)
    assert after == (live, refs)
    assert grown < 100_000, f"{grown} bytes more after 1000 rounds"


# --- registration
# -----------------------------------------------------------------------------------------------------

def test_duplicate_names_are_refused():
    first = cube()
    with refused(ArgumentError, "'cube' exists already", "replace=True", at=False):
        cube()
    with refused(ArgumentError, "'relu' exists already", "choose another name", at=False):
        flow.custom_op("relu", lambda x: x, replace=True)
    again = flow.custom_op("cube", lambda x: x * 3, replace=True)
    x = flow.tensor(np.full(2, 2.0))
    assert REGISTRY["cube"] is again.op and "cube_grad" not in REGISTRY
    np.testing.assert_array_equal(again(x).numpy(), [6, 6])
    np.testing.assert_array_equal(first(x).numpy(), [8, 8])             # existing references keep the old op


@pytest.mark.parametrize("arguments, words", [
    (dict(name="two words"), ["not a name"]),
    (dict(backward=lambda dz, x: dz), ["backward asks for 'dz'", "dy, x, y"]),
    (dict(backward=lambda x: x), ["does not ask for a gradient", "dy"]),
    (dict(backward=lambda *args: args), ["backward asks for 'args'"]),
    (dict(forward=lambda *xs: xs[0]), ["does not say what its inputs are", 'inputs=("x", "w")']),
    (dict(forward=np.sin), ["names of forward's inputs are unknown"]),
    (dict(forward=lambda: 1), ["without inputs", "infer="]),
    (dict(outputs=("x",)), ["name of an input"]),
    (dict(inputs=("a b",)), ["inputs are not names"]),
    (dict(sbp="ab,b->ab"), ["sbp is not an axis equation", "1 inputs -> 1 outputs"]),
    (dict(sbp="ab->abc"), ["no new letters on the right"]),
    (dict(backward=lambda dy: dy, grad={"x": lambda dy: dy}), ["both backward and grad"]),
    (dict(infer=lambda z: z.shape), ["infer asks for 'z'", "x"]),
    (dict(grad={"x": lambda dz: dz}), ["a gradient asks for an unknown name"])])
def test_registration_errors(arguments, words):
    before = dict(REGISTRY), dict(CUSTOM)
    with refused(ArgumentError, *words, at=False, fix="grad" not in arguments):
        flow.custom_op(**{"name": "fresh", "forward": lambda x: x, **arguments})
    assert (dict(REGISTRY), dict(CUSTOM)) == before  # a failed registration changes no table


@pytest.mark.parametrize("result", [None, 3, ((-1,), flow.float32), [(2,), (2,)]])
def test_infer_must_return_a_shape(result):
    op = flow.custom_op("shapeless", lambda x: x, infer=lambda x: result)
    with refused(ArgumentError, "infer did not return a shape"):
        op(flow.tensor(f32(2)))


def test_libraries():
    with pytest.raises(FileNotFoundError, match="no Python op stands in for final_relu.so"):
        flow.config.load_library("path/final_relu.so")
    flow.custom_op("myrelu", lambda x: np.maximum(x, 0), library="final_relu")
    assert flow.config.load_library("path/final_relu.so") is None
    cube()
    flow.config.load_library("libcube.so")
