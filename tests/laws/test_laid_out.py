"""Laws of a Program (core/graph/program.py), through each front end that uses it: a job, an nn.Graph, a graph
of global tensors on two ranks, and a graph loaded from a file.

Changing the number of threads between two runs changes the plan, but no value. Threads that call one program
concurrently get their own results, and every step counts once.
"""
from threading import Barrier, Thread
from types import SimpleNamespace

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from flowedu import nn
from flowedu.core.sbp.ranks import current

X = np.random.RandomState(3).randn(6, 8).astype(np.float32)
W = np.random.RandomState(4).randn(8, 8).astype(np.float32) / 3


class DropoutNet(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.w, self.drop = nn.Parameter(flow.tensor(W)), nn.Dropout(rate)

    def forward(self, x):
        return self.drop(x @ self.w).tanh()


class Step(nn.Graph):
    def __init__(self, model, lr=None):
        super().__init__()
        self.model, self.lr = model, lr
        if lr is not None:
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=lr))

    def build(self, x):
        y = self.model(x)
        if self.lr is not None:
            y.mean().backward()
        return y


# Each front end: give(array) -> argument of call; call; value(result) -> array; programs; steps taken, or
# None
def job(lr, rate, folder):
    flow.clear_default_session()

    @flow.global_function("train")
    def step(x: tp.Numpy.Placeholder(X.shape)) -> tp.Numpy:
        w = flow.get_variable("w", shape=W.shape, initializer=flow.constant_initializer(0.25))
        y = flow.matmul(x, w)
        y = flow.math.tanh(flow.nn.dropout(y, rate=rate, seed=5, name="drop") if rate else y)
        rates = flow.optimizer.PiecewiseConstantScheduler([], [lr])
        flow.optimizer.SGD(rates, momentum=0).minimize(flow.math.reduce_mean(y))
        return y

    step(X)
    return SimpleNamespace(give=lambda a: a, call=step, value=lambda y: y, programs=[step.compiled.program],
                           steps=lambda: int(step.compiled.step[0]))


def graph(lr, rate, folder):
    flow.manual_seed(7)
    step = Step(DropoutNet(rate), lr)
    step(flow.tensor(X))
    return SimpleNamespace(give=flow.tensor, call=step, value=lambda y: y.numpy(),
                           programs=[step._compiled.program],
                           steps=lambda: int(step.state_dict()["System-Train-TrainStep"].item()))


def ranks(lr, rate, folder):
    flow.manual_seed(7)
    place = flow.placement("cpu", [0, 1])
    step = Step(DropoutNet(rate).to_global(place, flow.sbp.broadcast), lr)

    def give(a):
        return flow.tensor(a, placement=place, sbp=flow.sbp.split(0))

    step(give(X))
    return SimpleNamespace(give=give, call=step, value=lambda y: y.numpy(),
                           programs=list(step._compiled.program.programs.programs.values()),
                           steps=lambda: int(step.state_dict()["System-Train-TrainStep"].item()))


def predicting(lr, rate, folder):
    flow.manual_seed(7)
    step = Step(DropoutNet(rate))
    step(flow.tensor(X))
    return SimpleNamespace(give=flow.tensor, call=step, value=lambda y: y.numpy(),
                           programs=[step._compiled.program], steps=None)


def loaded(lr, rate, folder):
    made = Step(DropoutNet(rate).eval())
    made(flow.tensor(X))
    flow.save(made, folder / f"graph{len(list(folder.iterdir()))}")
    found = flow.load_graph(folder / f"graph{len(list(folder.iterdir())) - 1}")
    return SimpleNamespace(give=flow.tensor, call=found, value=lambda y: y.numpy(), programs=[found.program],
                           steps=None)


FRONTS = pytest.mark.parametrize("front", [job, graph, predicting, ranks, loaded])


@pytest.fixture(autouse=True)
def surroundings(world):
    world(2)
    if current().name != "virtual":
        pytest.skip("two threads of one process call, and it has all ranks")
    before = flow.get_num_threads()
    yield
    flow.set_num_threads(before)
    flow.clear_default_session()


@FRONTS
def test_changing_the_number_of_threads_changes_the_plan_and_no_value(front, tmp_path):
    found = []
    for counts in ([4, 4, 4, 4, 4], [4, 2, 6, 1, 4]):
        flow.set_num_threads(4)
        f = front(0.1, 0.3, tmp_path)
        values = []
        for n, threads in enumerate(counts):
            flow.set_num_threads(threads)
            values.append(f.value(f.call(f.give(X + n))))
            assert [p.executor.nt for p in f.programs] == [max(1, threads // p.share) for p in f.programs]
            assert not any(p.stale() for p in f.programs)
        assert f.steps is None or f.steps() == 1 + len(counts)
        found.append(values)
    for want, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    if front is not loaded:                                        # random ops make steps differ
        assert not np.allclose(found[0][0] != 0, found[0][1] != 0)


@FRONTS
def test_concurrent_calls_of_one_program_do_not_interfere(front, tmp_path):
    f, rounds = front(0.0, 0.0, tmp_path), 40
    inputs = [f.give(X * s) for s in (1, -1, 0.5)]
    want = [f.value(f.call(x)) for x in inputs]
    before, found, start = f.steps() if f.steps else 0, {}, Barrier(len(inputs))

    def caller(i):
        start.wait()
        for n in range(rounds):
            if i == 0 and n % 5 == 0:
                flow.set_num_threads(1 + n // 5 % 4)               # replanned while other threads call
            found[i, n] = f.call(inputs[i])

    threads = [Thread(target=caller, args=(i,)) for i in range(len(inputs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == rounds * len(inputs)
    for (i, _), y in found.items():
        np.testing.assert_allclose(f.value(y), want[i], rtol=1e-6, atol=1e-7)
    assert f.steps is None or f.steps() == before + len(found)


@pytest.mark.parametrize("front", [graph, loaded])
def test_a_parameter_with_other_memory_is_read_there(front, tmp_path):
    f = front(0.0, 0.0, tmp_path)
    program = f.programs[0]
    w = next(t for v, t in program.arrays.items() if v.shape == W.shape)
    w.data = flow.tensor(2 * W)
    assert program.stale()
    np.testing.assert_allclose(f.value(f.call(f.give(X))), np.tanh(X @ (2 * W)), rtol=1e-5, atol=1e-6)
    w.data = flow.tensor(W.astype(np.float64))
    with pytest.raises(RuntimeError, match="has changed since the graph was compiled"):
        f.call(f.give(X))
