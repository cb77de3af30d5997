"""Snippets of OneFlow's page "静态图模块 nn.Graph" as they were written, on synthetic images in the format of
CIFAR-10 and without pretrained weights, because tests do not use the network.
tests/doors/test_mock_programs.py runs its two whole programs.
"""
# ruff: noqa: I001, B007, E501, F841
import os
import re
import shutil

import numpy as np
import pytest

import flowedu as flow
import flowedu.nn as nn
from flowedu import vision as flowvision
from flowedu.vision import transforms
from flowedu.vision.models.neural_style_transfer.stylenet import neural_style_transfer
from common import read_definitions

BATCH_SIZE = 64
EPOCH_NUM = 1
SIZE = 6 * BATCH_SIZE

DEVICE = "cuda" if flow.cuda.is_available() else "cpu"


def parts(drop_last):
    """Common first lines of both scripts of the page."""
    training_data = flowvision.datasets.SyntheticCIFAR10(
        train=True,
        transform=transforms.ToTensor(),
        size=SIZE,
    )

    train_dataloader = flow.utils.data.DataLoader(
        training_data, BATCH_SIZE, shuffle=True, drop_last=drop_last
    )

    model = flowvision.models.mobilenet_v2().to(DEVICE)
    model.classifer = nn.Sequential(nn.Dropout(0.2), nn.Linear(model.last_channel, 10))
    model.train()

    loss_fn = nn.CrossEntropyLoss().to(DEVICE)
    optimizer = flow.optim.SGD(model.parameters(), lr=1e-3)
    return train_dataloader, model, loss_fn, optimizer


@pytest.fixture(scope="module")
def eager():
    flow.manual_seed(0)
    return parts(drop_last=False)


@pytest.fixture(scope="module")
def trained():
    """Train by a graph as on the page; return the graph and the printed text."""
    flow.manual_seed(0)
    train_dataloader, model, loss_fn, optimizer = parts(drop_last=True)

    GraphMobileNetV2, = read_definitions("oneflow_graph_mobilenet", "GraphMobileNetV2", flow=flow,
                                         model=model, loss_fn=loss_fn, optimizer=optimizer)
    graph_mobile_net_v2 = GraphMobileNetV2()
    before = repr(graph_mobile_net_v2)
    printed = []

    for t in range(EPOCH_NUM):
        size = len(train_dataloader.dataset)
        for batch, (x, y) in enumerate(train_dataloader):
            x = x.to(DEVICE)
            y = y.to(DEVICE)
            loss = graph_mobile_net_v2(x, y)
            current = batch * BATCH_SIZE
            if batch % 5 == 0:
                printed.append(f"loss: {loss:>7f} [{current:>5d}/{size:>5d}]")
    return GraphMobileNetV2, graph_mobile_net_v2, printed, before


LINE = r"loss: (\d\.\d{6}) \[ +(\d+)/  384\]"


def losses(printed):
    found = [re.fullmatch(LINE, line) for line in printed]
    assert all(found), printed
    assert [int(f[2]) for f in found] == [0, 320]
    return [float(f[1]) for f in found]


def test_a_custom_graph(capsys):
    class ModuleMyLinear(nn.Module):
        def __init__(self, in_features, out_features):
            super().__init__()
            self.weight = nn.Parameter(flow.randn(in_features, out_features))
            self.bias = nn.Parameter(flow.randn(out_features))

        def forward(self, input):
            return flow.matmul(input, self.weight) + self.bias

    model = ModuleMyLinear(4, 3)

    class GraphMyLinear(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, input):
            return self.model(input)

    graph_mylinear = GraphMyLinear()
    input = flow.randn(1, 4)
    out = graph_mylinear(input)
    print(out)
    number = r" *-?\d+\.\d+(e[+-]\d+)?"
    assert re.fullmatch(rf"tensor\(\[\[{number},{number},{number}\]\], dtype=flowedu.float32\)\n",
                        capsys.readouterr().out)
    np.testing.assert_allclose(out.numpy(), model(input).numpy(), rtol=1e-5)


def test_a_mistake_of_the_page(eager):
    """`build` returns `loss`, which is never assigned."""
    train_dataloader, model, loss_fn, optimizer = eager

    class ModelGraph(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, x, y):
            y_pred = self.model(x)
            return loss  # noqa: F821

    model_graph = ModelGraph()
    with pytest.raises(NameError, match="loss"):
        model_graph(flow.randn(2, 3, 32, 32), flow.tensor([0, 1]))


def test_prediction(eager):
    train_dataloader, model, loss_fn, optimizer = eager

    class GraphMobileNetV2(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, x):
            return self.model(x)

    model.eval()                        # otherwise dropout makes the two differ
    graph_mobile_net_v2 = GraphMobileNetV2()

    x, _ = next(iter(train_dataloader))
    x = x.to(DEVICE)
    y_pred = graph_mobile_net_v2(x)
    assert y_pred.shape == (BATCH_SIZE, 1000) and not y_pred.requires_grad
    np.testing.assert_allclose(y_pred.numpy(), model(x).numpy(), rtol=1e-3, atol=1e-3)


def test_training(trained):
    _, graph_mobile_net_v2, printed, _ = trained
    first, last = losses(printed)
    assert abs(first - np.log(1000)) < 0.2 and last < first
    assert graph_mobile_net_v2.state_dict()["System-Train-TrainStep"].tolist() == [6]


def test_print_before_the_first_call(trained):
    _, graph, _, before = trained
    for line in f"""(GRAPH:{graph.name}:GraphMobileNetV2): (
  (CONFIG:config:GraphConfig(training=True, ))
  (MODULE:model:MobileNetV2()): (
    (MODULE:model.features:Sequential()): (
      (MODULE:model.features.0:ConvBNActivation()): (
        (MODULE:model.features.0.0:Conv2d(3, 32, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False)): (
          (PARAMETER:model.features.0.0.weight:tensor(..., size=(32, 3, 3, 3), dtype=flowedu.float32, requires_grad=True)): ()
    (MODULE:model.classifer:Sequential()): (
      (MODULE:model.classifer.0:Dropout(p=0.2, inplace=False)): (
      (MODULE:model.classifer.1:Linear(in_features=1280, out_features=10, bias=True)): (
        (PARAMETER:model.classifer.1.weight:tensor(..., size=(10, 1280), dtype=flowedu.float32, requires_grad=True)): ()
        (PARAMETER:model.classifer.1.bias:tensor(..., size=(10,), dtype=flowedu.float32, requires_grad=True)): ()
  (MODULE:loss_fn:CrossEntropyLoss()): (""".split("\n"):
        # long lines are wrapped
        joined = before.replace(",\n" + " " * 17, ", ").replace(",\n" + " " * 15, ", ")
        assert line in joined, line
    assert "INPUT" not in before and "OPERATOR" not in before


def test_print_after_the_first_call(trained):
    _, graph, _, _ = trained
    text = re.sub(r",\n +", ", ", repr(graph))
    for line in (
            f"(INPUT:_{graph.name}_input.0.0_2:tensor(..., size=(64, 3, 32, 32), dtype=flowedu.float32))",
            f"(INPUT:_{graph.name}_input.0.1_3:tensor(..., size=(64,), dtype=flowedu.int64))",
            "(INPUT:_model_input.0.0_2:tensor(..., is_lazy='True', size=(64, 3, 32, 32), "
            "dtype=flowedu.float32))",
            "(INPUT:_model.features.0.0_input.0.0_2:tensor(..., is_lazy='True', size=(64, 3, 32, 32), ",
            "(OUTPUT:_model.features.0.0_output.0.0_2:tensor(..., is_lazy='True', size=(64, 32, 16, 16), ",
            "(BUFFER:model.features.0.1.running_mean:tensor(..., size=(32,), dtype=flowedu.float32))",
            f"(OUTPUT:_{graph.name}_output.0.0_2:tensor(..., is_lazy='True', size=(), dtype=flowedu.float32"):
        assert line in text, line
    assert {t[1:-1] for t in re.findall(r"\([A-Z]+:", text)} == {
        "GRAPH", "CONFIG", "MODULE", "PARAMETER", "BUFFER", "INPUT", "OUTPUT", "OPERATOR"}


@pytest.mark.parametrize("v_level", [0, 1, 2, 3])
def test_debug(v_level, capsys):
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())

    class GraphSmall(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, x):
            return self.model(x)

    graph_small = GraphSmall()
    graph_small.debug(v_level=v_level)
    graph_small(flow.randn(2, 4))
    out = capsys.readouterr().out
    head = f"(GRAPH:{graph_small.name}:GraphSmall) "
    assert (head + "start building graph." in out and re.search(r"building plan Done! Cost time: \d\.\d\ds\.",
                                                                out))
    assert ("(MODULE:model.0:Linear(in_features=4, out_features=3, bias=True))" in out) == (v_level >= 1)
    assert ("(OPERATOR: model.0-matmul-" in out) == (v_level >= 2)
    assert ("test_seed_002.py:" in out) == (v_level >= 3)
    graph_small.debug()                                               # v_level 0 by default


def test_saving_and_loading(trained, tmp_path):
    GraphMobileNetV2, graph_mobile_net_v2, _, _ = trained
    CHECKPOINT_SAVE_DIR = str(tmp_path / "GraphMobileNetV2")
    os.mkdir(CHECKPOINT_SAVE_DIR)

    shutil.rmtree(CHECKPOINT_SAVE_DIR)  # 清理上一次的状态
    flow.save(graph_mobile_net_v2.state_dict(), CHECKPOINT_SAVE_DIR)

    with pytest.raises(AssertionError, match="a module inside an nn.Graph") as e:
        flow.save(graph_mobile_net_v2.model.state_dict(), CHECKPOINT_SAVE_DIR)  # 会报错
    assert "graph.state_dict()" in str(e.value)

    state = {k: v.numpy().copy() for k, v in graph_mobile_net_v2.state_dict()["model"].items()}
    x, y = flow.randn(64, 3, 32, 32), flow.zeros(64, dtype=flow.int64)
    graph_mobile_net_v2(x, y)                                         # one step too many
    with pytest.raises(AssertionError, match="before the first call"):
        graph_mobile_net_v2.load_state_dict(flow.load(CHECKPOINT_SAVE_DIR))

    graph_mobile_net_v2 = GraphMobileNetV2()
    state_dict = flow.load(CHECKPOINT_SAVE_DIR)
    graph_mobile_net_v2.load_state_dict(state_dict)
    for k, v in graph_mobile_net_v2.state_dict()["model"].items():
        assert np.array_equal(v.numpy(), state[k])
    assert graph_mobile_net_v2.state_dict()["System-Train-TrainStep"].tolist() == [6]


def test_deployment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    MyGraph, = read_definitions("oneflow_deploy", "MyGraph", nn=nn)
    fake_image = flow.ones((1, 3, 64, 64))
    model = neural_style_transfer(pretrained=False, progress=True)
    model.eval()

    graph = MyGraph(model)
    out = graph(fake_image)

    flow.save(graph, "1/model")
    assert "model.mlir" in os.listdir("1/model")
    assert (np.array_equal(flow.load_graph("1/model")(fake_image).numpy(), out.numpy())
            and out.shape == (1, 3, 64, 64))


def test_a_deployed_graph_of_training(trained, tmp_path):
    _, graph_mobile_net_v2, _, _ = trained
    flow.save(graph_mobile_net_v2, str(tmp_path / "1" / "model"))
    names = os.listdir(tmp_path / "1" / "model")
    # it is never used in a computation
    assert "model.classifier.1.weight" in names and not [n for n in names if "classifer" in n]


def test_further_snippets():
    def loss(y_pred, y):
        return flow.sum(1/2*(y_pred-y)**2)

    x = flow.ones(1, 5)  # 输入
    w = flow.randn(5, 3, requires_grad=True)
    b = flow.randn(1, 3, requires_grad=True)
    z = flow.matmul(x, w) + b

    y = flow.zeros(1, 3)  # label
    l = loss(z, y)
    l.backward()
    np.testing.assert_allclose(b.grad.numpy(), z.numpy(), rtol=1e-6)
    np.testing.assert_allclose(w.grad.numpy(), np.ones((5, 1)) * z.numpy(), rtol=1e-6)
