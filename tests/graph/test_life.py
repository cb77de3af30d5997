"""Life cycle of an nn.Graph: construction, one trace, many calls, shared modules, frozen modes, and errors of
misuse.
"""
import gc

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn

from .making import assert_same_state, batch, make_graph, make_mlp, run_as_graph, trainer, twins


def test_init_must_come_first():
    class Late(nn.Graph):
        def __init__(self):
            self.model = make_mlp()
            super().__init__()

    with pytest.raises(AttributeError,
                       match="Base class nn.Graph has not been initialized, please call super"):
        Late()


def test_an_uninitialized_graph_raises_everywhere():
    class Never(nn.Graph):
        def __init__(self):
            pass

        def build(self, x):
            return x

    g, sgd = Never(), flow.optim.SGD(make_mlp().parameters(), lr=0.1)
    for use in (lambda: g(flow.ones(1)), lambda: repr(g), lambda: g.name, g.state_dict, lambda: g.is_compiled,
                g.debug, lambda: g.add_optimizer(sgd)):
        with pytest.raises(AttributeError, match="has not been initialized"):
            use()


def test_valid_attributes():
    g = make_graph(lambda self, x: x)
    with pytest.raises(AttributeError, match="not allowed to set Tensor attribute named 'w'") as e:
        g.w = flow.ones(2)
    assert "nn.Module to hold the tensor" in str(e.value)
    with pytest.raises(AttributeError, match="Tensor attribute"):
        g.p = nn.Parameter(flow.ones(2))
    with pytest.raises(AttributeError, match="Optimizer attribute named 'o'") as e:
        g.o = flow.optim.SGD(make_mlp().parameters(), lr=0.1)
    assert "add_optimizer(...) instead" in str(e.value)
    g.number, g.other = 3, make_graph(lambda self, x: x)
    assert g.number == 3 and isinstance(g.other, nn.Graph) and list(g.state_dict()) == []
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = g.nothing
    assert not hasattr(g, "train") and not hasattr(g, "parameters")


def test_build_must_be_overridden():
    class Empty(nn.Graph):
        pass

    with pytest.raises(NotImplementedError, match="must be overridden"):
        Empty()(flow.ones(1))


def test_names_count_up_by_class():
    class Counted(nn.Graph):
        def build(self, x):
            return x

    class Other(Counted):
        pass

    assert [Counted().name, Counted().name, Other().name, Counted().name] == [
        "Counted_0", "Counted_1", "Other_0", "Counted_2"]


def test_build_runs_once(capsys):
    seen = []

    def build(self, x):
        seen.append(x)
        print("building")
        return x * (2 if len(seen) == 1 else 100)

    g = make_graph(build)
    assert not g.is_compiled and not g.training
    x = flow.ones(3)
    assert all(g(x * k).tolist() == [2.0 * k] * 3 for k in (1, 2, 3))
    assert g.is_compiled and len(seen) == 1 and capsys.readouterr().out == "building\n"


def test_a_graph_is_compiled_once():
    g = make_graph(lambda self, x: x + 1)
    assert g._compile(flow.ones(2)) is g._compiled and g.is_compiled
    with pytest.raises(RuntimeError, match=f"nn.Graph {g.name} has already been compiled"):
        g._compile(flow.ones(2))


def test_a_failed_build_leaves_no_state(capsys):
    model, fail = make_mlp(), [True]

    def build(self, x):
        y = self.model(x)
        if fail[0]:
            raise KeyError("mine")
        return y

    g = make_graph(build, model=model)
    with pytest.raises(KeyError, match="mine"):
        g(batch()[0])
    assert f"[ERROR](GRAPH:{g.name}:G) building graph got error." in capsys.readouterr().out
    assert (flow.ones(2) + 1).tolist() == [2, 2] and not g.is_compiled         # eager mode is active again
    fail[0] = False
    x = batch()[0]
    assert np.allclose(g(x).numpy(), model(x).numpy(), atol=1e-6)
    fresh = make_graph(build, model=model)
    fresh(x)
    assert repr(g).count("OPERATOR") == repr(fresh).count("OPERATOR")  # no trace of the first attempt


def test_calling_build_runs_eagerly():
    model = make_mlp()
    g = make_graph(lambda self, x: self.model(x), model=model)
    x = batch()[0]
    y = g.build(x)
    assert y.grad_fn is not None and np.array_equal(y.numpy(), model(x).numpy()) and not g.is_compiled
    assert np.allclose(g(x).numpy(), y.numpy(), atol=1e-6)


def test_graphs_share_modules_with_each_other_and_with_eager_code():
    model, x, y = make_mlp(), *batch()
    train = trainer(model, flow.optim.SGD(model.parameters(), lr=0.5))
    predict = make_graph(lambda self, x: self.model(x), model=model)
    before = predict(x).numpy().copy()
    train(x, y)
    after = predict(x).numpy()
    assert np.abs(after - before).max() > 1e-3 and np.allclose(after, model(x).numpy(), atol=1e-6)
    with flow.no_grad():
        model[0].weight.zero_()                                     # and vice versa
        model[0].bias.zero_()
    assert np.allclose(predict(x).numpy(), model[2].bias.numpy(), atol=1e-6)
    state = {k: flow.full(tuple(v.shape), 0.5) for k, v in model.state_dict().items()}
    model.load_state_dict(state)
    assert np.allclose(predict(x).numpy(), model(x).numpy(), atol=1e-5)


def test_parameters_with_replaced_memory_are_followed():
    model, x = make_mlp(), batch()[0]
    g = make_graph(lambda self, x: self.model(x), model=model)
    g(x)
    model[0].weight.data = flow.ones(6, 4)
    garbage = [flow.full((6, 4), 7.0) for _ in range(9)]            # reuses the freed memory
    assert np.allclose(g(x).numpy(), model(x).numpy(), atol=1e-5) and len(garbage) == 9
    model[0].weight.data = flow.randn(4, 6).T                       # different strides
    assert np.allclose(g(x).numpy(), model(x).numpy(), atol=1e-5)
    model.double()
    with pytest.raises(RuntimeError, match="model.0.weight has changed since the graph was compiled"):
        g(x)


def test_parameters_that_are_not_contiguous():
    def make():
        model = nn.Linear(4, 3)
        model.weight = nn.Parameter(flow.randn(4, 3).T)
        return model

    (a, b), (x, y) = twins(make), batch()
    assert not a.weight.is_contiguous()
    sgd = flow.optim.SGD(b.parameters(), lr=0.3, momentum=0.9)
    g = trainer(a, flow.optim.SGD(a.parameters(), lr=0.3, momentum=0.9))
    for _ in range(3):
        loss = nn.CrossEntropyLoss()(b(x), y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        assert np.isclose(g(x, y).item(), loss.item(), rtol=1e-5)
    assert_same_state(a, b)


def test_a_new_mode_causes_a_new_trace(capsys):
    model, x = nn.Dropout(0.5), flow.ones(200)
    g = make_graph(lambda self, x: self.model(x), model=model)
    first, second = g(x).numpy(), g(x).numpy()
    assert set(np.unique(first)) == set(np.unique(second)) == {0.0, 2.0} and (first != second).any()
    assert not capsys.readouterr().err
    model.eval()
    assert np.array_equal(g(x).numpy(), x.numpy())
    why = "tracing build again because model.training changed from True to False"
    assert capsys.readouterr().err == f"nn.Graph {g.name}: {why}\n"


def test_a_graph_in_a_graph_is_refused():
    inner = make_graph(lambda self, x: x + 1)
    for _ in range(2):                                              # before and after it is compiled
        with pytest.raises(RuntimeError, match="called inside the build of a graph") as e:
            run_as_graph(lambda x: inner(x) * 2, flow.ones(2))
        assert "call the module that the inner graph holds" in str(e.value)
        assert inner(flow.ones(2)).tolist() == [2, 2]


def test_trace_decorator():
    @nn.Graph.trace
    def double(x, k=None):
        return x * 2 if k is None else x * k

    assert double.name.startswith("double_graph_") and isinstance(double, nn.Graph)
    assert double(flow.ones(2), k=flow.full((2,), 3.0)).tolist() == [3, 3]
    with pytest.raises(AssertionError, match="only functions can be traced"):
        nn.Graph.trace(make_mlp())


def test_a_graph_is_freed_with_its_memory():
    def run():
        model = make_mlp()
        g = trainer(model, flow.optim.Adam(model.parameters()))
        g(*batch())

    run()
    gc.collect()
    live = flow.memory_stats()["live"]
    for _ in range(5):
        run()
        gc.collect()
    assert flow.memory_stats()["live"] <= live + 4096


def test_number_of_threads_may_change():
    model, x = make_mlp(), batch()[0]
    g, n = make_graph(lambda self, x: self.model(x), model=model), flow.get_num_threads()
    want = g(x).numpy()
    try:
        for k in (1, 2, 1):
            flow.set_num_threads(k)
            assert np.allclose(g(x).numpy(), want, atol=1e-6)
    finally:
        flow.set_num_threads(n)


def test_threads_share_a_graph():
    from concurrent.futures import ThreadPoolExecutor
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))
    g = make_graph(lambda self, x: self.model(x), model=model)
    xs = [flow.full((32, 64), float(k)) for k in range(8)]
    want = [g(x).numpy() for x in xs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            for got, w in zip(pool.map(g, xs), want):
                assert np.array_equal(got.numpy(), w)
