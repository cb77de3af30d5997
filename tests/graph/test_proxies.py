"""graph.model: a proxy of the module, and what `.to(...)` makes of it."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.nn.graph import GraphModule, GraphTensor, ProxyModule

from .making import batch, graph


class Net(nn.Module):
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


def made():
    model = Net()
    return model, graph(lambda self, x: self.model(x), model=model)


def test_what_a_proxy_is():
    model, g = made()
    assert isinstance(g.model, ProxyModule) and not isinstance(g.model, nn.Module)
    assert g.model.to(nn.Module) is model and g.model.body.to(nn.Module) is model.body
    assert g.model.body[0].to(nn.Linear) is model.body[0] and g.model.parts[-1].to(nn.Module) is model.parts[0]
    assert [p.to(nn.Module) for p in g.model.body] == list(model.body) and len(g.model.body) == 3
    assert [p.to(nn.Module) for p in g.model.body[1:]] == list(model.body)[1:]
    assert g.model.width == 3 and g.model.training and "model.body" in repr(g.model.body)
    assert list(g.model.state_dict()) == list(model.state_dict())
    assert next(iter(g.model.parameters())) is next(iter(model.parameters()))


def test_handles():
    _, g = made()
    handle = g.model.body[0].to(GraphModule)
    assert (handle.name, handle.name_prefix, handle.path, handle.type) == ("0", "model.body.", "model.body.0", "MODULE")
    assert repr(handle) == "(GraphModule:model.body.0())"
    handle.activation_checkpointing = True
    handle.set_stage(1)
    assert handle is g.model.body[0].to(GraphModule) and handle.stage_id == 1
    assert "(GraphModule:model.body.0(stage_id=1, activation_checkpointing=True, )): ()" in repr(g)
    with pytest.raises(ValueError, match="stage_id"):
        handle.set_stage(-1)


def test_tensors():
    model, g = made()
    weight, mean = g.model.body[0].weight, g.model.body[2].running_mean
    assert weight.to(flow.Tensor) is model.body[0].weight and weight.shape == (3, 4)
    assert weight.to(GraphTensor) == GraphTensor("model.body.0.weight", "PARAMETER")
    assert mean.to(GraphTensor).type == "BUFFER" and repr(mean).startswith("(BUFFER:model.body.2.running_mean:tensor([0.")
    assert repr(g.model.scale).startswith("(PARAMETER:model.scale:")


def test_other_words_go_to_the_module():
    model, g = made()
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
    model = Net().eval()

    def build(self, x):
        assert self.model.body[0].weight is model.body[0].weight
        return self.model(x) + self.model.scale.sum() + flow.matmul(x, self.model.body[0].weight.T).sum()

    x = batch()[0]
    want = model(x) + model.scale.sum() + flow.matmul(x, model.body[0].weight.T).sum()
    assert np.allclose(graph(build, model=model)(x).numpy(), want.numpy(), atol=1e-4)


def test_the_state_of_a_proxy_is_not_saved(tmp_path):
    _, g = made()
    with pytest.raises(AssertionError, match="state_dict is that of a module inside an nn.Graph") as e:
        flow.save(g.model.state_dict(), str(tmp_path / "state"))
    assert "graph.state_dict()" in str(e.value) and not (tmp_path / "state").exists()
