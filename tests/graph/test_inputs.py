"""Inputs and outputs of build: containers, names, fixed shapes, lazy tensors, and tensors from outside."""
import warnings
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.errors import FlowError, GradientError, UnsupportedError

from .making import batch, make_graph, make_mlp, run_as_graph

Pair = namedtuple("Pair", "a b")


def test_containers_keep_their_types():
    def build(x, tree, nothing=None, k=None):
        return ({"o": [x + 1, (tree["a"],)], "p": nothing, "q": OrderedDict(z=tree["l"][0] * 2)}, [x], (k,),
                Pair(x, None))

    out = run_as_graph(build, flow.ones(1), {"a": flow.ones(2), "l": [flow.ones(3)]}, None, k=flow.ones(4))
    assert type(out) is tuple and type(out[1]) is list and type(out[2]) is tuple and len(out[2]) == 1
    assert type(out[0]["q"]) is OrderedDict and out[0]["p"] is None and type(out[0]["o"][1]) is tuple
    assert type(out[3]) is Pair and out[3].b is None
    assert (out[0]["o"][0].tolist() == [2] and out[0]["q"]["z"].tolist() == [2, 2, 2]
            and out[2][0].shape == (4,))
    assert run_as_graph(lambda: flow.ones(2)).tolist() == [1, 1]
    assert (run_as_graph(lambda x: None, flow.ones(1)) is None
            and run_as_graph(lambda x: [], flow.ones(1)) == [])
    assert type(run_as_graph(lambda x: (x,), flow.ones(1))) is tuple
    # flow.return_types.max
    assert run_as_graph(lambda x: x.max(0), flow.ones(3, 2)).indices.dtype is flow.int64


def test_names_are_paths_to_the_leaves():
    g = make_graph(lambda self, x, tree, k=None: {"y": x, "z": [tree["a"], k]})
    g(flow.ones(1), {"a": flow.ones(2), "b": [None, flow.ones(3)]}, k=flow.ones(4))
    text, n = repr(g), g.name
    for name in (f"(INPUT:_{n}_input.0.0_2:", f"(INPUT:_{n}_input.0.1.0_a:",
                 f"[WARNING](INPUT:_{n}_input.0.1.1.0_6:<class 'NoneType'>)", f"(INPUT:_{n}_input.0.1.1.1_7:",
                 f"(INPUT:_{n}_input.1.0_k:", f"(OUTPUT:_{n}_output.0.0.0_y:",
                 f"(OUTPUT:_{n}_output.0.0.1.1_6:"):
        assert name in text, (name, text)


@pytest.mark.parametrize("leaf", [3, 2.5, "text", np.ones(2), {1, 2}])
def test_other_leaves_are_refused(leaf, capsys):
    g = make_graph(lambda self, x, k: x)
    with pytest.raises(NotImplementedError, match="input item only supports types: Tensor/None") as e:
        g(flow.ones(1), leaf)
    assert f"[ERROR](INPUT:_{g.name}_input.0.1_3:{type(leaf)})" in capsys.readouterr().out
    assert "flow.tensor(value)" in str(e.value)
    h = make_graph(lambda self, x: (x, leaf))
    with pytest.raises(NotImplementedError, match="output item only supports types: Tensor/None"):
        h(flow.ones(1))
    assert f"[ERROR](OUTPUT:_{h.name}_output.0.1_3:{type(leaf)})" in capsys.readouterr().out


def test_inputs_are_static(capsys):
    g = make_graph(lambda self, x: x + 1)
    g(flow.ones(1, 4))
    place = "cpu:0" if flow.ones(1).device.type == "cpu" else "cuda:0"         # tests/cuda runs this on a GPU
    for other, remedy in ((flow.ones(2, 4), "drop_last=True"), (flow.ones(1, 4).double(),
                                                                "x.to(flow.float32)"),
                          (flow.ones(4), "drop_last=True"), (None, "float32[1, 4]"), (3, "float32[1, 4]"),
                          (np.ones((1, 4), np.float32), "float32[1, 4]")):
        with pytest.raises(RuntimeError, match="ONLY accepts static inputs tensor meta") as e:
            g(other)
        assert (f"shape=(1, 4), dtype=flowedu.float32, device={place}" in str(e.value)
                and remedy in e.value.fix)
    assert f"[ERROR](GRAPH:{g.name}:G) run got error: GraphError" in capsys.readouterr().out
    for args in ((), (flow.ones(1, 4), flow.ones(1))):
        with pytest.raises(RuntimeError, match="Number of inputs and NNGraph::inputs_op_names mismatch"):
            g(*args)
    assert g(flow.zeros(1, 4)).tolist() == [[1] * 4]


def test_structure_of_inputs_is_static():
    g = make_graph(lambda self, tree, k=None, j=None: tree["a"] - (k if k is not None else j))
    assert g({"a": flow.ones(2), "b": flow.zeros(2)}, k=flow.ones(2)).tolist() == [0, 0]
    for tree in ({"b": flow.zeros(2), "a": flow.ones(2)}, {"a": flow.ones(2), "c": flow.ones(2)}):
        with pytest.raises(RuntimeError, match="other names, or another order"):
            g(tree, k=flow.ones(2))
    with pytest.raises(RuntimeError, match="other names, or another order"):
        g({"a": flow.ones(2), "b": flow.zeros(2)}, j=flow.ones(2))


def test_strided_inputs():
    w = flow.arange(12.0).reshape(3, 4)
    g = make_graph(lambda self, x: flow.matmul(x, w.T) + x[:, :1])
    for x in (flow.randn(2, 4), flow.randn(4, 2).T, flow.randn(1, 4).expand(2, 4), flow.randn(2, 8)[:, ::2]):
        assert np.allclose(g(x).numpy(), x.numpy() @ w.numpy().T + x.numpy()[:, :1], atol=1e-5)


def test_outputs_are_fresh_and_have_no_history():
    x = flow.ones(3, requires_grad=True)
    g = make_graph(lambda self, x: x)
    y = g(x)
    assert (y is not x and not np.shares_memory(x.numpy(), y.numpy()) and not y.requires_grad
            and y.grad_fn is None)
    z = g(x)
    y.zero_()
    assert z.tolist() == x.tolist() == [1, 1, 1]
    twice = run_as_graph(lambda x: (x * 2, [x * 2]), x)
    twice[0].zero_()
    assert twice[1][0].tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="does not require grad"):
        run_as_graph(lambda x: (x * 2).sum(), x).backward()


def test_writes_to_inputs_reach_the_caller():
    """Writes as if build were called eagerly, also if the caller's tensor is a non-contiguous view."""
    def build(x):
        x += 1
        x[0] = 5
        x.mul_(2)
        return x

    g = make_graph(lambda self, x: build(x))
    for x, y in (flow.ones(2, 3), flow.ones(2, 3)), (flow.zeros(3, 4)[:, :2].t(),
                                                     flow.zeros(3, 4)[:, :2].t()):
        for _ in range(2):
            assert g(x).tolist() == build(y).tolist() == x.tolist() == y.tolist()


def test_inputs_that_may_not_be_written_are_refused():
    """Inputs that eager code would refuse, and memory that the graph reads under another name."""
    g = make_graph(lambda self, x, y: (x.add_(1), x + y)[1])
    x = flow.ones(3)
    with pytest.raises(UnsupportedError, match="another tensor that the graph uses lies in the same memory"):
        g(x, x)
    with pytest.raises(GradientError, match="requires a gradient"):
        g(flow.ones(3, requires_grad=True), x)
    with pytest.raises(FlowError):
        g(flow.ones(1).expand(3), x)
    assert g(x, flow.ones(3)).tolist() == [3] * 3 and x.tolist() == [2] * 3
    both = flow.ones(6)
    assert g(both[:3], both[3:]).tolist() == [3] * 3 and both.tolist() == [2] * 3 + [1] * 3


def test_writes_through_views():
    def build(x):
        y = x * 1
        row, flat = y[0], y.view(-1)
        y.add_(1)
        row.mul_(3)
        y[:, 1][1] = -1
        return row, flat, y

    x = flow.arange(4.0).reshape(2, 2)
    for got, want in zip(run_as_graph(build, x), build(x)):
        assert got.tolist() == want.tolist()


# ---- lazy tensors have no values
@pytest.mark.parametrize("ask, text", [
    (lambda x: x.numpy(), r"tensor.numpy\(\) is not allowed to be called in nn.Graph.build\(\*args\) or be "
     r"called by lazy"),
    (lambda x: x.tolist(), r"tensor.tolist\(\) is not allowed to be called in nn.Graph.build"),
    (lambda x: bool(x.sum() > 0), r"is not allowed to be called in nn.Graph.build"),
    (lambda x: float(x.sum()), r"is not allowed to be called in nn.Graph.build"),
    (lambda x: int(x.sum()), r"is not allowed to be called in nn.Graph.build"),
    (lambda x: 1 if x.sum() > 0 else 2, r"is not allowed to be called in nn.Graph.build")])
def test_reading_values_is_refused(ask, text):
    with pytest.raises(AssertionError, match=text) as e:
        run_as_graph(lambda x: (ask(x), x)[1], flow.ones(2))
    assert "return it from build()" in str(e.value)


def test_item_is_refused():
    with pytest.raises(RuntimeError, match="Only eager scalar tensor support GetItem."):
        run_as_graph(lambda x: (x.sum().item(), x)[1], flow.ones(2))


def test_attributes_of_lazy_tensors():
    def build(x):
        assert x.is_lazy and not x.is_eager and x.shape == (2, 3) and x.dtype is flow.float32 and len(x) == 2
        seen.append(repr(x))
        return flow.stack([row * i for i, row in enumerate(x)])         # a loop over the rows is unrolled

    seen = []
    assert run_as_graph(build, flow.ones(2, 3)).tolist() == [[0] * 3, [1] * 3]
    assert seen == ["tensor(..., is_lazy='True', size=(2, 3), dtype=flowedu.float32)"]


def test_lazy_tensors_that_escape_build():
    kept = []
    g = make_graph(lambda self, x: (kept.append(x), x + 1)[1])
    g(flow.ones(2))
    lazy, = kept
    for use in (lambda: lazy + 1, lambda: flow.ones(2) + lazy):
        with pytest.raises(RuntimeError, match="this tensor is lazy"):
            use()
    with pytest.raises(RuntimeError, match="called inside the build of a graph, or with a lazy tensor"):
        g(lazy)
    with pytest.raises(RuntimeError, match="a lazy tensor of another graph, or of an earlier build"):
        run_as_graph(lambda x: x + lazy, flow.ones(2))


# ---- tensors from outside
def test_tensors_of_closures_stay_alive_and_in_the_state():
    w = flow.ones(3)
    g = make_graph(lambda self, x: x * w)
    x = flow.ones(3)
    assert g(x).tolist() == [1] * 3
    w.fill_(5)
    assert g(x).tolist() == [5] * 3 and g.state_dict()["FreeEagerTensor-0"].tolist() == [5] * 3
    view = w[1:]
    h = make_graph(lambda self, x: x + view)
    h(flow.ones(2))
    w.zero_()
    assert h(flow.ones(2)).tolist() == [1, 1]


def test_tensors_of_closures_may_be_written():
    count = flow.zeros(2)

    def build(self, x):
        count.add_(x)
        return count * 10

    g = make_graph(build)
    assert [g(flow.ones(2)).tolist() for _ in range(2)] == [[10, 10], [20, 20]] and count.tolist() == [2, 2]


def test_memory_written_under_one_name_and_read_under_another():
    w = flow.zeros(3)
    v = w[:2]

    def build(self, x):
        w.add_(x)
        return v * 1

    with pytest.raises(NotImplementedError, match="FreeEagerTensor-0 in place, and FreeEagerTensor-1 shares "
                       "its memory"):
        make_graph(build)(flow.ones(3))


class Counter(nn.Module):
    def __init__(self, in_place):
        super().__init__()
        self.in_place = in_place
        self.register_buffer("n", flow.zeros(1))

    def forward(self, x):
        if self.in_place:
            self.n += 1
        else:
            self.n = self.n + 1
        return x * self.n


@pytest.mark.parametrize("in_place", [True, False])
def test_buffers_that_count(in_place):
    model = Counter(in_place)
    n = model.n
    g = make_graph(lambda self, x: self.model(x), model=model)
    assert [g(flow.ones(1)).item() for _ in range(3)] == [1, 2, 3]
    assert model.n is n and n.item() == 3 and model(flow.ones(1)).item() == 4


def test_buffers_keep_their_shape():
    class Grows(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", flow.zeros(1))

        def forward(self, x):
            self.n = x.sum()
            return x

    model = Grows()
    with pytest.raises(NotImplementedError, match="gives the buffer model.n another shape or dtype"):
        make_graph(lambda self, x: self.model(x), model=model)(flow.ones(2))
    assert model.n.tolist() == [0]


def test_tensors_made_inside():
    g = make_graph(lambda self, x: x + flow.ones(2) * flow.arange(2) + flow.full((2,),
                                                                                 0.5)
                   + flow.tensor([1.0, 2.0]))
    assert g(flow.zeros(2)).tolist() == [1.5, 3.5]
    assert [v.tolist() for v in g.state_dict().values()] == [[1, 2]]  # flow.tensor(numbers) is such a tensor
    h = make_graph(lambda self, x: x + flow.rand(2))
    assert (h(flow.zeros(2)).numpy() != h(flow.zeros(2)).numpy()).any()               # redrawn in every run


# ---- modules
def test_modules_that_are_not_registered():
    model = make_mlp()
    g = make_graph(lambda self, x: model(x))
    with pytest.warns(UserWarning, match="is called in a nn.Graph, but not registered into a nn.Graph"):
        y = g(batch()[0])
    assert np.allclose(y.numpy(), model(batch()[0]).numpy(), atol=1e-6)
    assert set(g.state_dict()) == {f"FreeEagerTensor-{i}" for i in range(4)}


def test_hooks_are_not_run():
    model, calls = make_mlp(), []
    model[0].register_forward_hook(lambda *a: calls.append(1))
    model[2].register_forward_pre_hook(lambda *a: calls.append(2))
    g = make_graph(lambda self, x: self.model(x), model=model)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        y = g(batch()[0])
    assert (not calls and len(told) == 1
            and "the hooks of model.0 are not run in a nn.Graph" in str(told[0].message))
    assert np.allclose(y.numpy(), model(batch()[0]).numpy(), atol=1e-6) and calls == [1, 2]


def test_data_dependent_results_are_refused():
    for f in (lambda x: x.nonzero(), lambda x: x[x > 0], lambda x: x.unique(),
              lambda x: x.masked_select(x > 0)):
        with pytest.raises(RuntimeError, match="depends on the data"):
            run_as_graph(f, flow.ones(3))
