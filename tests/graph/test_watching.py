"""flow.watch and flow.watch_diff in build: handlers receive the values after every call."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu import typing as tp

from .making import batch, make_graph, make_mlp, run_as_graph

X = batch()[0]


def test_values_and_gradients_in_the_order_of_registration(capsys):
    model, got = nn.Linear(4, 1), []

    def handler(tag):
        def f(a: tp.Numpy):
            got.append((tag, a.copy()))
        return f

    def build(self, x):
        y = self.model(x)
        flow.watch(y, handler("y"))
        flow.watch_diff(y, handler("dy"))
        flow.watch(x, "the input")
        flow.watch(self.model.weight, handler("w"))
        flow.watch_diff(self.model.weight, handler("dw"))
        loss = (y * y).sum()
        loss.backward()
        flow.watch(loss, handler("loss"))
        return y * 2

    g = make_graph(build, flow.optim.SGD(model.parameters(), lr=0.01), model=model)
    for _ in range(2):
        got.clear()
        w, b = model.weight.numpy().copy(), model.bias.numpy().copy()
        out = g(X)
        x = X.numpy()
        y = x @ w.T + b
        assert [t for t, _ in got] == ["y", "dy", "w", "dw", "loss"]
        for (_, a), want in zip(got, (y, 2 * y, w, (2 * y).T @ x, (y * y).sum())):
            assert np.allclose(a, want, atol=1e-4)
        assert np.allclose(out.numpy(), 2 * y, atol=1e-5)
    assert capsys.readouterr().out.count("the input\n[[") == 2


def test_handlers_receive_the_annotated_type():
    got = []

    def lists(a: tp.ListNumpy):
        got.append(a)

    run_as_graph(lambda x: (flow.watch(x, lists), flow.watch(x, lambda blob: got.append(blob.numpy())), x)[2],
                 X)
    assert (isinstance(got[0], list) and np.array_equal(got[0][0], X.numpy())
            and np.array_equal(got[1], X.numpy()))
    with pytest.raises(AssertionError, match="only one parameter"):
        run_as_graph(lambda x: (flow.watch(x, lambda a, b: None), x)[1], X)


def test_without_a_backward_there_is_no_gradient(capsys):
    run_as_graph(lambda x: (flow.watch_diff(x, "never"), x * 2)[1], X)
    assert "never" not in capsys.readouterr().out


def test_gradients_without_an_optimizer(capsys):
    model = make_mlp()

    def build(self, x):
        flow.watch_diff(self.model[2].bias, "db")
        y = self.model(x).sum()
        y.backward()
        return y

    before = model.state_dict()["2.bias"].numpy().copy()
    make_graph(build, model=model)(X)
    assert capsys.readouterr().out == "db\n[8. 8. 8.]\n" and np.array_equal(model[2].bias.numpy(), before)


def test_an_exception_in_a_handler_reaches_the_caller():
    def handler(a):
        raise KeyError("mine")

    g = make_graph(lambda self, x: (flow.watch(x, handler), x * 2)[1])
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            g(X)


def test_micro_batches_are_watched_together():
    got, lin = [], nn.Linear(4, 1)

    def handler(a: tp.Numpy):
        got.append(a.copy())

    def build(self, x):
        y = self.lin(x)
        flow.watch(y, handler)
        flow.watch_diff(y, handler)
        loss = y.sum()
        loss.backward()
        return loss

    make_graph(build, flow.optim.SGD(lin.parameters(), lr=0.0), lin=lin,
               config={"set_gradient_accumulation_steps": 2})(X)
    assert np.allclose(got[0], lin(X).numpy(), atol=1e-5) and got[1].tolist() == [[1.0]] * 8


def test_watch_outside_of_a_build_is_refused():
    with pytest.raises(NotImplementedError, match="watch: not inside a job") as e:
        flow.watch(X)
    assert "build of an nn.Graph" in str(e.value)
