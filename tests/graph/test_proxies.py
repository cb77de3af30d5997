"""graph.model: a proxy of the module, and its conversions by `.to(...)`."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.nn.graph import GraphModule, GraphTensor, ProxyModule

from .making import batch, make_graph


class ProxiedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.BatchNorm1d(3))
        self.parts = nn.ModuleList([nn.Linear(3, 3)])
        self.scale = nn.Parameter(flow.ones(1))
        self.width = 3

    def forward(self, x):
        return self.doubled(self.parts[0](self.body(x)))

    def doubled(self, x):
        return x * self.scale * 2


def make_model_and_graph():
    model = ProxiedNet()
    return model, make_graph(lambda self, x: self.model(x), model=model)


def test_attributes_of_a_proxy():
    model, g = make_model_and_graph()
    assert isinstance(g.model, ProxyModule) and not isinstance(g.model, nn.Module)
    assert g.model.to(nn.Module) is model and g.model.body.to(nn.Module) is model.body
    assert (g.model.body[0].to(nn.Linear) is model.body[0]
            and g.model.parts[-1].to(nn.Module) is model.parts[0])
    assert [p.to(nn.Module) for p in g.model.body] == list(model.body) and len(g.model.body) == 3
    assert [p.to(nn.Module) for p in g.model.body[1:]] == list(model.body)[1:]
    assert g.model.width == 3 and g.model.training and "model.body" in repr(g.model.body)
    assert list(g.model.state_dict()) == list(model.state_dict())
    assert next(iter(g.model.parameters())) is next(iter(model.parameters()))


def test_to_graph_module_returns_a_handle_with_options():
    _, g = make_model_and_graph()
    handle = g.model.body[0].to(GraphModule)
    assert (handle.name, handle.name_prefix, handle.path, handle.type) == ("0", "model.body.", "model.body.0",
                                                                           "MODULE")
    assert repr(handle) == "(GraphModule:model.body.0())"
    handle.activation_checkpointing = True
    handle.set_stage(1)
    assert handle is g.model.body[0].to(GraphModule) and handle.stage_id == 1
    assert "(GraphModule:model.body.0(stage_id=1, activation_checkpointing=True, )): ()" in repr(g)
    with pytest.raises(ValueError, match="stage_id"):
        handle.set_stage(-1)


def test_proxied_tensors_convert_to_tensors_and_graph_tensors():
    model, g = make_model_and_graph()
    weight, mean = g.model.body[0].weight, g.model.body[2].running_mean
    assert weight.to(flow.Tensor) is model.body[0].weight and weight.shape == (3, 4)
    assert weight.to(GraphTensor) == GraphTensor("model.body.0.weight", "PARAMETER")
    assert (mean.to(GraphTensor).type == "BUFFER"
            and repr(mean).startswith("(BUFFER:model.body.2.running_mean:tensor([0."))
    assert repr(g.model.scale).startswith("(PARAMETER:model.scale:")


def test_other_attributes_come_from_the_module():
    model, g = make_model_and_graph()
    g.model.eval()
    assert not model.training and not model.body[2].training
    g.model.width = 7
    assert model.width == 7
    assert np.array_equal(g.model(batch()[0]).numpy(), model(batch()[0]).numpy())
    assert g.model.to(flow.float64) is g.model and model.scale.dtype is flow.float64
    assert flow.optim.SGD(g.model.parameters(), lr=0.1).param_groups[0]["params"][0] is model.scale
    with pytest.raises(AttributeError):
        _ = g.model.nothing


def test_in_build_parameters_are_tensors():
    model = ProxiedNet().eval()

    def build(self, x):
        assert self.model.body[0].weight is model.body[0].weight
        return self.model(x) + self.model.scale.sum() + flow.matmul(x, self.model.body[0].weight.T).sum()

    x = batch()[0]
    want = model(x) + model.scale.sum() + flow.matmul(x, model.body[0].weight.T).sum()
    assert np.allclose(make_graph(build, model=model)(x).numpy(), want.numpy(), atol=1e-4)


def test_the_state_of_a_proxy_is_not_saved(tmp_path):
    _, g = make_model_and_graph()
    with pytest.raises(AssertionError, match="state_dict is that of a module inside an nn.Graph") as e:
        flow.save(g.model.state_dict(), str(tmp_path / "state"))
    assert "graph.state_dict()" in str(e.value) and not (tmp_path / "state").exists()


# ---- writes: the law of every proxy
def linear():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.BatchNorm1d(2)).eval()
    nn.init.constant_(model[0].weight, 1.0)
    return model


WRITES = {                                     # the write, and how to read it back
    "data": (lambda m: setattr(m[0].weight, "data", flow.full((2, 2), 7.0)),
             lambda m: m[0].weight.numpy().tolist()),
    "data of a buffer": (lambda m: setattr(m[1].running_mean, "data", flow.full((2,), 3.0)),
                         lambda m: m[1].running_mean.numpy().tolist()),
    "grad": (lambda m: setattr(m[0].weight, "grad", flow.full((2, 2), 2.0)),
             lambda m: m[0].weight.grad is not None and m[0].weight.grad.numpy().tolist()),
    "requires_grad": (lambda m: setattr(m[0].weight, "requires_grad", False),
                      lambda m: m[0].weight.requires_grad),
    "unknown name": (lambda m: setattr(m[0].weight, "tag", 5), lambda m: getattr(m[0].weight, "tag", None)),
    "element": (lambda m: m[0].weight.detach().__setitem__(0, 4.0), lambda m: m[0].weight.numpy().tolist()),
    "buffer element": (lambda m: m[1].running_mean.__setitem__(0, 4.0),
                       lambda m: m[1].running_mean.numpy().tolist()),
    "in place": (lambda m: m[1].running_mean.add_(1.0), lambda m: m[1].running_mean.numpy().tolist()),
    "parameter": (lambda m: setattr(m[0], "weight", nn.Parameter(flow.full((2, 2), 9.0))),
                  lambda m: m[0].weight.numpy().tolist()),
    "parameter of another": (lambda m: setattr(m[1], "weight", m[1].bias),
                             lambda m: m[1].weight.numpy().tolist()),
    "buffer": (lambda m: setattr(m[1], "running_var", flow.full((2,), 5.0)),
               lambda m: m[1].running_var.numpy().tolist()),
    "number": (lambda m: setattr(m[1], "eps", 0.5), lambda m: m[1].eps),
    "training": (lambda m: setattr(m[1], "training", True), lambda m: m[1].training),
    "module": (lambda m: setattr(m, "0", nn.Linear(2, 2, bias=False)), lambda m: m[0].weight.numpy().shape),
    "module of another": (lambda m: setattr(m, "1", m[0]), lambda m: [type(p).__name__ for p in m]),
    "item": (lambda m: m.__setitem__(1, nn.ReLU()), lambda m: [type(p).__name__ for p in m]),
    "deletion": (lambda m: m.__delattr__("1"), lambda m: len(m)),
    "deletion of an item": (lambda m: m.__delitem__(1), lambda m: len(m)),
    "method": (lambda m: m[0].weight.requires_grad_(False), lambda m: m[0].weight.requires_grad),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("when", ["in __init__", "before the first call", "between calls"])
def test_a_write_through_a_proxy_equals_a_write_to_the_module(write, when):
    """The same write to a copy of the module, without a graph, gives the same state, read-back value, and
    results.
    """
    change, read = WRITES[write]
    model, twin = linear(), linear()
    flow.manual_seed(1)
    change(twin)
    flow.manual_seed(1)

    class Small(nn.Graph):
        def __init__(self):
            super().__init__()
            self.m = model
            if when == "in __init__":
                change(self.m)

        def build(self, x):
            return self.m(x)

    g, x = Small(), flow.tensor([[1.0, 2.0], [3.0, 5.0]])
    if when == "between calls":
        g(x)
    if when != "in __init__":
        change(g.m)
    assert read(model) == read(twin)
    proxied = read(g.m)
    assert proxied == read(twin) or isinstance(proxied, list) and set(proxied) == {"ProxyModule"}
    assert_same_calls(g, model, twin, x)


def assert_same_calls(g, model, twin, x, change=lambda module: None):
    """Assert that two calls of the graph and of the copy have the same results and states."""
    for _ in range(2):
        change(twin)
        np.testing.assert_allclose(g(x).numpy(), twin(x).numpy(), rtol=1e-5, atol=1e-5)
        state, expected = model.state_dict(), twin.state_dict()
        assert list(state) == list(expected)
        for key, value in expected.items():
            np.testing.assert_allclose(state[key].numpy(), value.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("write", ["data", "data of a buffer", "grad", "requires_grad", "unknown name",
                                   "parameter", "buffer", "number", "training", "in place", "buffer element"])
def test_a_write_in_build_is_applied_or_refused(write):
    """A write in build is applied at every call, as in the copy."""
    change, read = WRITES[write]
    model, twin = linear(), linear()

    def build(self, x):
        change(self.m)
        return self.m(x)

    x = flow.tensor([[1.0, 2.0], [3.0, 5.0]])
    g = make_graph(build, m=model)
    try:
        g(x)
    except flow.errors.FlowError as e:
        assert e.fix and e.got
        return
    change(twin)
    twin(x)
    assert_same_calls(g, model, twin, x, change)
    assert read(model) == read(twin)


def test_a_proxied_tensor_is_computed_with():
    """Operators, indexing, and methods behave as on the tensor."""
    model, g = make_model_and_graph()
    w, proxy = model.body[0].weight, g.model.body[0].weight
    for f in (lambda t: t + 1, lambda t: 2 * t, lambda t: -t, lambda t: t @ t.T, lambda t: t[0],
              lambda t: t > 0,
              lambda t: np.asarray(t.detach()), lambda t: t.sum(), lambda t: flow.tensor(t.tolist())):
        assert np.array_equal(np.asarray(f(proxy).tolist()), np.asarray(f(w).tolist()))
    assert len(proxy) == len(w) and [*proxy][0].shape == (4,) and hash(proxy) == hash(w)


def test_a_write_in_place_by_an_operator():
    model, g = make_model_and_graph()
    before = model.body[2].running_mean.numpy().copy()
    g.model.body[2].running_mean += 1
    assert np.array_equal(model.body[2].running_mean.numpy(), before + 1)
    assert "running_mean" in model.body[2]._buffers


def test_a_proxied_tensor_is_refused_where_a_tensor_is():
    _, g = make_model_and_graph()
    with pytest.raises(flow.errors.FlowError, match="not allowed to set Tensor attribute"):
        g.other = g.model.scale
