"""Networks in nn.Graph have the same results as eagerly, and the tutorial's program runs unchanged."""
import numpy as np
import pytest

import flowedu as flow
import flowedu.nn as nn
import flowedu.vision as flowvision
import flowedu.vision.transforms as transforms
from flowedu.models import GPT
from flowedu.nn import functional as F
from flowedu.vision import models

from . import files

CLASSIFIERS = {
    "mobilenet_v2": (lambda: models.mobilenet_v2(num_classes=5, width_mult=0.25, dropout=0.0),
                     (8, 3, 64, 64)),
    "resnet18": (lambda: models.resnet18(num_classes=5, width_mult=0.125), (8, 3, 64, 64)),
    "resnet50": (lambda: models.resnet50(num_classes=5, width_mult=0.0625), (4, 3, 64, 64)),
    "vgg11_bn": (lambda: models.vgg11_bn(num_classes=5, width_mult=0.0625, dropout=0.0), (4, 3, 64, 64)),
    "alexnet": (lambda: models.alexnet(num_classes=5, width_mult=0.0625, dropout=0.0), (4, 3, 64, 64)),
    "lenet5": (lambda: models.lenet5(num_classes=5), (4, 1, 28, 28)),
}


class Train(nn.Graph):
    def __init__(self, model, optimizer, loss):
        super().__init__()
        self.model, self.loss = model, loss
        self.add_optimizer(optimizer)

    def build(self, *xs):
        loss = self.loss(self.model, *xs)
        loss.backward()
        return loss


class Eval(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, *xs):
        return self.model(*xs)


def same_in_a_graph(make, loss, xs):
    flow.manual_seed(0)
    eager, other = make(), make()
    other.load_state_dict(eager.state_dict())
    optimizer = flow.optim.SGD(eager.parameters(), lr=0.01)
    train = Train(other, flow.optim.SGD(other.parameters(), lr=0.01), loss)
    for _ in range(2):
        want = loss(eager, *xs)
        optimizer.zero_grad()
        want.backward()
        optimizer.step()
        np.testing.assert_allclose(train(*xs).item(), want.item(), rtol=1e-4)
    for (name, p), q in zip(eager.state_dict().items(), other.state_dict().values()):
        scale = np.abs(p.detach().numpy()).max()
        np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), atol=2e-3 * scale + 1e-6,
                                   err_msg=name)
    eager.load_state_dict(other.state_dict())
    eager.eval()
    other.eval()
    with flow.no_grad():
        want = eager(xs[0]).numpy()
    np.testing.assert_allclose(Eval(other)(xs[0]).numpy(), want, atol=1e-4 * np.abs(want).max() + 1e-6)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name):
    make, shape = CLASSIFIERS[name]
    # rounding errors of float32 grow with each norm
    x, y = flow.randn(*shape).double(), flow.randint(0, 5, (shape[0],))
    same_in_a_graph(lambda: make().double(), lambda m, x, y: F.cross_entropy(m(x), y), (x, y))


def test_the_style_network():
    def make():
        return models.neural_style_transfer.neural_style_transfer(width_mult=0.125)

    same_in_a_graph(make, lambda m, x: (m(x) - 100).square().mean() * 1e-4, (flow.rand(1, 3, 24, 20) * 255,))


def test_gpt():
    idx = flow.randint(0, 17, (2, 8))
    same_in_a_graph(lambda: GPT(17, n_layer=2, n_head=2, d=16, block_size=8), lambda m, x, y: m(x, y)[1],
                    (idx, idx + 0))


def test_transforms_of_tensors_in_a_graph():
    ready = transforms.Compose([transforms.Resize((6, 5)), transforms.Pad(1, padding_mode="reflect"),
                                transforms.CenterCrop(5), transforms.Grayscale(3),
                                transforms.Normalize([0.5], [2.0])])

    class Graph(nn.Graph):
        def build(self, x):
            return ready(x)

    x = flow.rand(2, 3, 9, 8)
    np.testing.assert_allclose(Graph()(x).numpy(), ready(x).numpy(), atol=1e-6)


@pytest.fixture
def cifar10(tmp_path):
    files.write_files(tmp_path / "cifar-10-batches-py", files.cifar10_python(n=8))
    return tmp_path


def test_the_tutorial(cifar10):
    """OneFlow's nn.Graph tutorial: eager training, a graph for prediction, and a graph for training,
    including its misspelling.
    """
    data = flowvision.datasets.CIFAR10(root=cifar10, train=True, transform=transforms.ToTensor(),
                                       download=True)
    loader = flow.utils.data.DataLoader(data, 8, shuffle=True, drop_last=True)
    flow.manual_seed(0)
    model = flowvision.models.mobilenet_v2().to("cpu")
    model.classifer = nn.Sequential(nn.Dropout(0.2), nn.Linear(model.last_channel, 10))
    model.train()
    loss_fn = nn.CrossEntropyLoss().to("cpu")
    optimizer = flow.optim.SGD(model.parameters(), lr=1e-3)
    seen = 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += 1
        assert x.shape == (8, 3, 32, 32) and y.dtype is flow.int64
        if seen == 2:
            break
    assert abs(loss.item() - np.log(1000)) < 1, "the head of 1000 classes is the one in use"
    assert f"loss: {loss:>7f} [{seen * 8:>5d}/{len(data):>5d}]".endswith("[   16/   40]")

    class GraphMobileNetV2(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.loss_fn = loss_fn
            self.add_optimizer(optimizer)

        def build(self, x, y):
            loss = self.loss_fn(self.model(x), y)
            loss.backward()
            return loss

    graph = GraphMobileNetV2()
    unused = model.classifer[1].weight.numpy().copy()
    used = model.classifier[1].weight.numpy().copy()
    first, second = graph(x, y).item(), graph(x, y).item()
    assert np.isfinite([first, second]).all() and second != first
    np.testing.assert_array_equal(model.classifer[1].weight.numpy(), unused)
    assert (model.classifier[1].weight.numpy() != used).any()
    text = repr(graph)
    for words in ("(MODULE:model:MobileNetV2())", "(MODULE:model.features.0:ConvBNActivation())",
                  "model.classifer:"):
        assert words in text
    with flow.no_grad():
        assert Eval(model.eval())(x).shape == (8, 1000)
