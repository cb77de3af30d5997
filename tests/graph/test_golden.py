"""nn.Graph against transcripts of OneFlow 0.9 (`flowedu.` where it prints `oneflow.`)."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn

BEFORE = """(GRAPH:GraphMyLinear_{k}:GraphMyLinear): (
  (CONFIG:config:GraphConfig(training=False, ))
  (MODULE:model:ModuleMyLinear()): (
    (PARAMETER:model.weight:tensor(..., size=(4, 3), dtype=flowedu.float32, requires_grad=True)): ()
    (PARAMETER:model.bias:tensor(..., size=(3,), dtype=flowedu.float32, requires_grad=True)): ()
    (GraphModule:model()): ()
  )
)"""

P = 'placement=(flowedu.placement(type="cpu", ranks=[0]))'
F = "dtype=(flowedu.float32)"
AFTER = f"""(GRAPH:GraphMyLinear_{{k}}:GraphMyLinear): (
  (CONFIG:config:GraphConfig(training=False, ))
  (INPUT:_GraphMyLinear_{{k}}_input.0.0_2:tensor(..., size=(1, 4), dtype=flowedu.float32))
  (MODULE:model:ModuleMyLinear()): (
    (INPUT:_model_input.0.0_2:tensor(..., is_lazy='True', size=(1, 4), dtype=flowedu.float32))
    (PARAMETER:model.weight:tensor(..., size=(4, 3), dtype=flowedu.float32, grad_fn=<accumulate_grad>)): ()
    (PARAMETER:model.bias:tensor(..., size=(3,), dtype=flowedu.float32, grad_fn=<accumulate_grad>)): ()
    (OUTPUT:_model_output.0.0_2:tensor(..., is_lazy='True', size=(1, 3), dtype=flowedu.float32,
           grad_fn=<broadcast_add_backward>))
    (GraphModule:model()): (
      (OPERATOR: model.weight() -> (out:sbp=(B), size=(4, 3), {F}), {P})
      (OPERATOR: model-matmul-0(_GraphMyLinear_{{k}}_input.0.0_2/out:(sbp=(B), size=(1, 4), {F}), model.weight/out:(\
sbp=(B), size=(4, 3), {F})) -> (model-matmul-0/out_0:(sbp=(B), size=(1, 3), {F})), {P})
      (OPERATOR: model.bias() -> (out:sbp=(B), size=(3), {F}), {P})
      (OPERATOR: model-broadcast_add-1(model-matmul-0/out_0:(sbp=(B), size=(1, 3), {F}), model.bias/out:(sbp=(B), \
size=(3), {F})) -> (model-broadcast_add-1/z_0:(sbp=(B), size=(1, 3), {F})), {P})
    )
  )
  (OPERATOR: _GraphMyLinear_{{k}}_input.0.0_2() -> (_GraphMyLinear_{{k}}_input.0.0_2/out:sbp=(B), size=(1, 4), {F}), {P})
  (OPERATOR: _GraphMyLinear_{{k}}_output.0.0_2(model-broadcast_add-1/z_0:sbp=(B), size=(1, 3), {F}) -> \
(_GraphMyLinear_{{k}}_output.0.0_2/out:sbp=(B), size=(1, 3), {F}), {P})
  (OUTPUT:_GraphMyLinear_{{k}}_output.0.0_2:tensor(..., is_lazy='True', size=(1, 3), dtype=flowedu.float32,
         grad_fn=<broadcast_add_backward>))
)"""


class ModuleMyLinear(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(flow.randn(in_features, out_features))
        self.bias = nn.Parameter(flow.randn(out_features))

    def forward(self, input):
        return flow.matmul(input, self.weight) + self.bias


def my_linear(model):
    class GraphMyLinear(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, input):
            return self.model(input)

    return GraphMyLinear()


def test_print_before_and_after_a_call():
    model = ModuleMyLinear(4, 3)
    graph = my_linear(model)
    k = graph.name.rpartition("_")[2]
    assert repr(graph) == BEFORE.format(k=k)
    x = flow.randn(1, 4)
    out = graph(x)
    assert np.allclose(out.numpy(), x.numpy() @ model.weight.numpy() + model.bias.numpy(), atol=1e-6)
    assert repr(graph) == AFTER.format(k=k)


def test_numbers_of_a_training_graph():
    model = nn.Linear(2, 1)
    with flow.no_grad():
        model.weight.copy_(flow.tensor([[0.5, -0.5]]))
        model.bias.zero_()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    class Lin(nn.Graph):
        def __init__(self):
            super().__init__()
            self.m = model
            self.add_optimizer(optimizer)

        def build(self, x, y):
            loss = ((self.m(x) - y) ** 2).mean()
            loss.backward()
            return loss

    graph = Lin()
    x, y = flow.tensor([[1., 2.], [3., 4.]]), flow.tensor([[1.], [2.]])
    weights, biases, losses = [], [], []
    for _ in range(3):
        losses.append(graph(x, y).item())
        weights.append(model.weight.numpy().copy()), biases.append(model.bias.item())
    assert np.allclose(losses, [4.25, 19.7, 14.0981], rtol=1e-5)
    assert np.allclose(weights, [[[1.4, .8]], [[.23, -.83]], [[.833, .077]]], atol=1e-4)
    assert np.allclose(biases, [.4, -.06, .244], atol=1e-4)
    state = graph.state_dict()
    assert np.allclose(state["m.weight-momentum"].numpy(), [[-6.03, -9.07]], atol=1e-3)
    assert np.allclose(state["m.bias-momentum"].numpy(), [-3.04], atol=1e-3)
    assert state["System-Train-TrainStep"].tolist() == [3]
    assert state["System-Train-TrainStep"].dtype is flow.int64


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.relu = nn.Linear(4, 3), nn.ReLU()
        self.register_buffer("scale", flow.ones(3))

    def forward(self, x):
        return self.relu(self.fc1(x * 1.0)) * self.scale


class WithNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.bn = nn.Linear(4, 3), nn.BatchNorm1d(3)
        self.register_buffer("scale", flow.ones(1))

    def forward(self, x):
        return self.bn(self.fc1(x)) * self.scale


def trainer(model, optimizer, loss_fn=None, name="G1"):
    def __init__(self):
        nn.Graph.__init__(self)
        self.model, self.loss_fn = model, loss_fn or nn.CrossEntropyLoss()
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss

    return type(name, (nn.Graph,), {"__init__": __init__, "build": build})()


def test_debug_prints_during_the_build(capsys):
    model = Net()
    graph = trainer(model, flow.optim.SGD(model.parameters(), lr=0.1), name="G1")
    graph.debug(1)
    graph(flow.randn(2, 4), flow.tensor([0, 2]))
    out = capsys.readouterr().out
    head = f"(GRAPH:{graph.name}:G1) "
    wanted = [head + "start building graph.",
              head + "start building graph builders of parameters and buffers.",
              head + "end building graph builders of parameters and buffers.",
              head + "start building graph inputs.",
              f"(INPUT:_{graph.name}_input.0.0_2:", f"(INPUT:_{graph.name}_input.0.1_3:",
              head + "end building graph inputs.",
              head + "start building graph modules.", "(MODULE:model:Net())", "(INPUT:_model_input.0.0_2:",
              "(BUFFER:model.scale:", "(MODULE:model.fc1:Linear(in_features=4, out_features=3, bias=True))",
              "(INPUT:_model.fc1_input.0.0_2:", "(PARAMETER:model.fc1.weight:", "(PARAMETER:model.fc1.bias:",
              "(OUTPUT:_model.fc1_output.0.0_2:", "(MODULE:model.relu:ReLU())",
              "(INPUT:_model.relu_input.0.0_2:",
              "(OUTPUT:_model.relu_output.0.0_2:", "(OUTPUT:_model_output.0.0_2:",
              "(MODULE:loss_fn:CrossEntropyLoss())",
              "(INPUT:_loss_fn_input.0.0_2:", "(INPUT:_loss_fn_input.0.1_3:",
              "(OUTPUT:_loss_fn_output.0.0_2:",
              head + "end building graph modules.", head + "start building graph outputs.",
              f"(OUTPUT:_{graph.name}_output.0.0_2:", head + "end building graph outputs.",
              head + "start building graph with compile passes.",
              head + "end building graph with compile passes.",
              head + "building graph Done! Cost time: ", head + "start building plan.",
              head + "building plan Done! Cost time: "]
    at = -1
    for text in wanted:
        at = out.find(text, at + 1)
        assert at >= 0, f"{text} is missing, or out of order, in\n{out}"


def test_debug_levels(capsys):
    lines = {}
    for level in (-1, 0, 1, 2, 3):
        graph = my_linear(ModuleMyLinear(4, 3))
        graph.debug(level)
        graph(flow.randn(1, 4))
        lines[level] = capsys.readouterr().out.count("\n")
    assert lines[-1] == 0 < lines[0] < lines[1] < lines[2] <= lines[3]
    graph = my_linear(ModuleMyLinear(4, 3))
    graph.debug(3, mode=False)
    graph.model.to(nn.graph.GraphModule).debug(1)                      # one module only
    graph(flow.randn(1, 4))
    told = [line.split(":")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("(")]
    assert told == ["(MODULE", "(INPUT", "(PARAMETER", "(PARAMETER", "(OUTPUT"]
    for ranks, loud in ((None, True), (0, True), (-1, True), ([0, 1], True), (1, False), ([1], False)):
        graph = my_linear(ModuleMyLinear(4, 3))
        graph.debug(0, ranks=ranks)
        graph(flow.randn(1, 4))
        assert bool(capsys.readouterr().out) == loud
    with pytest.raises(AssertionError, match="max verbose debug info level is 3"):
        graph.debug(4)
    with pytest.raises(ValueError, match="ranks must be int or List"):
        graph.debug(1, ranks="all")


@pytest.mark.parametrize("make, states", [
    (lambda p: flow.optim.SGD(p, lr=.1, momentum=.9), ["momentum"]), (lambda p: flow.optim.SGD(p, lr=.1), []),
    (lambda p: flow.optim.Adam(p, lr=.1), ["m", "v"]), (lambda p: flow.optim.AdamW(p, lr=.1), ["m", "v"])])
def test_the_state_of_a_graph(make, states):
    model = WithNorm()
    graph = trainer(model, make(model.parameters()))
    assert list(graph.state_dict()) == ["model", "loss_fn"]
    graph(flow.randn(8, 4), flow.tensor([0, 1, 2, 0, 1, 2, 0, 1]))
    state = graph.state_dict()
    assert list(state)[:2] == ["model", "loss_fn"] and not state["loss_fn"]
    assert list(state["model"]) == ["scale", "fc1.weight", "fc1.bias", "bn.weight", "bn.bias",
                                    "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"]
    assert state["model"]["bn.num_batches_tracked"].item() == 1
    assert set(list(state)[2:]) == {"System-Train-TrainStep", *(f"model.{p}-{s}" for s in states for p in (
        "fc1.weight", "fc1.bias", "bn.weight", "bn.bias"))}
