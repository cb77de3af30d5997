"""Every network equals its formula in NumPy, evaluated with random weights and statistics."""
import numpy as np
import pytest

import flowedu as flow
from flowedu.vision import models
from nn.formulas.images import interpolate, pad
from nn.formulas.norms import per_channel, standard
from nn.formulas.windows import adaptive_avg_pool, conv, max_pool


class NumpyNet:
    """Layers of networks in NumPy, with weights by name."""

    def __init__(self, own):
        self.own = own

    def has(self, name):
        return any(k.startswith(name + ".") for k in self.own)

    def conv(self, name, x, stride=1, padding=0, groups=1):
        return conv(2)(x, self.own[name + ".weight"], self.own.get(name + ".bias"), stride, padding,
                       1, groups)

    def norm(self, name, x):
        scale = self.own[name + ".weight"] / np.sqrt(self.own[name + ".running_var"] + 1e-5)
        away = x - per_channel(self.own[name + ".running_mean"], 4)
        return away * per_channel(scale, 4) + per_channel(self.own[name + ".bias"], 4)

    def instance(self, name, x):
        y = standard(x, (2, 3), 1e-5)
        return y * per_channel(self.own[name + ".weight"], 4) + per_channel(self.own[name + ".bias"], 4)

    def linear(self, name, x):
        return x @ self.own[name + ".weight"].T + self.own[name + ".bias"]

    def dense(self, names, x):
        """Apply linear layers with relu between them."""
        x = x.reshape(len(x), -1)
        for i, name in enumerate(names):
            x = self.linear(name, relu(x) if i else x)
        return x


def relu(x):
    return np.maximum(x, 0)


def relu6(x):
    return np.clip(x, 0, 6)


def pool(x, kernel, stride, padding=0):
    return max_pool(2)(x, kernel, stride, padding)


def resnet(net, x, counts, deep):
    x = pool(relu(net.norm("bn1", net.conv("conv1", x, 2, 3))), 3, 2, 1)
    for stage, count in enumerate(counts, 1):
        for i in range(count):
            name, stride = f"layer{stage}.{i}", 2 if stage > 1 and i == 0 else 1
            # the 3x3 convolution has the stride
            plan = [(1, 1), (stride, 3), (1, 1)] if deep else [(stride, 3), (1, 3)]
            y = x
            for j, (step, kernel) in enumerate(plan, 1):
                y = net.norm(f"{name}.bn{j}", net.conv(f"{name}.conv{j}", y, step, kernel // 2))
                y = relu(y) if j < len(plan) else y
            way = f"{name}.downsample"
            x = relu(y + (net.norm(way + ".1", net.conv(way + ".0", x, stride)) if net.has(way) else x))
    return net.linear("fc", x.mean((2, 3)))


def mobilenet(net, x):
    def part(name, x, stride=1, groups=1):
        padding = net.own[name + ".0.weight"].shape[-1] // 2
        return relu6(net.norm(name + ".1", net.conv(name + ".0", x, stride, padding, groups)))

    x = part("features.0", x, 2)
    # expansion, repeats, stride
    blocks = [(1, 1, 1), (6, 2, 2), (6, 3, 2), (6, 4, 2), (6, 3, 1), (6, 3, 2), (6, 1, 1)]
    at = 1
    for wider, count, stride in blocks:
        for i in range(count):
            name, y, last = f"features.{at}.conv", x, 1 if wider == 1 else 2
            y = y if wider == 1 else part(f"{name}.0", y)
            y = part(f"{name}.{last - 1}", y, stride if i == 0 else 1, y.shape[1])
            y = net.norm(f"{name}.{last + 1}", net.conv(f"{name}.{last}", y))
            x = x + y if y.shape == x.shape and (stride == 1 or i) else y
            at += 1
    return net.linear("classifier.1", part(f"features.{at}", x).mean((2, 3)))


def vgg(net, x, norm, plan):
    at = 0
    for stage in plan:
        for _ in range(stage):
            x = net.conv(f"features.{at}", x, 1, 1)
            x = relu(net.norm(f"features.{at + 1}", x) if norm else x)
            at += 3 if norm else 2
        x, at = pool(x, 2, 2), at + 1
    return net.dense(["classifier.0", "classifier.3", "classifier.6"], adaptive_avg_pool(2)(x, 7))


def alexnet(net, x):
    x = pool(relu(net.conv("features.0", x, 4, 2)), 3, 2)
    x = pool(relu(net.conv("features.3", x, 1, 2)), 3, 2)
    for at in (6, 8, 10):
        x = relu(net.conv(f"features.{at}", x, 1, 1))
    return net.dense(["classifier.1", "classifier.4", "classifier.6"], adaptive_avg_pool(2)(pool(x, 3, 2), 6))


def lenet(net, x):
    x = pool(relu(net.conv("features.0", x, 1, 2)), 2, 2)
    x = pool(relu(net.conv("features.3", x)), 2, 2)
    return net.dense(["classifier.0", "classifier.2", "classifier.4"], x)


def style(net, x):
    def layer(name, x, stride=1, larger=None):
        side = net.own[name + ".conv2d.weight"].shape[-1] // 2
        x = x if larger is None else interpolate(x, scale_factor=larger)
        return net.conv(name + ".conv2d", pad(x, (side,) * 4, "reflect"), stride)

    for i, stride in ((1, 1), (2, 2), (3, 2)):
        x = relu(net.instance(f"in{i}", layer(f"conv{i}", x, stride)))
    for i in range(1, 6):
        y = relu(net.instance(f"res{i}.in1", layer(f"res{i}.conv1", x)))
        x = x + net.instance(f"res{i}.in2", layer(f"res{i}.conv2", y))
    for i in (1, 2):
        x = relu(net.instance(f"in{i + 3}", layer(f"deconv{i}", x, 1, 2)))
    return np.clip(layer("deconv3", x), 0, 255)


NETWORKS = {     # name: (constructor, formula, input shape)
    "mobilenet_v2": ({"width_mult": 0.25}, mobilenet, (2, 3, 34, 33)),
    "resnet18": ({"width_mult": 0.0625}, lambda n, x: resnet(n, x, (2, 2, 2, 2), False), (2, 3, 33, 40)),
    "resnet34": ({"width_mult": 0.0625}, lambda n, x: resnet(n, x, (3, 4, 6, 3), False), (2, 3, 33, 33)),
    "resnet50": ({"width_mult": 0.0625}, lambda n, x: resnet(n, x, (3, 4, 6, 3), True), (2, 3, 33, 33)),
    "vgg11": ({"width_mult": 0.0625}, lambda n, x: vgg(n, x, False, (1, 1, 2, 2, 2)), (1, 3, 32, 33)),
    "vgg16_bn": ({"width_mult": 0.0625}, lambda n, x: vgg(n, x, True, (2, 2, 3, 3, 3)), (1, 3, 33, 32)),
    "vgg11_bn": ({"width_mult": 0.0625}, lambda n, x: vgg(n, x, True, (1, 1, 2, 2, 2)), (1, 3, 32, 32)),
    "vgg16": ({"width_mult": 0.0625}, lambda n, x: vgg(n, x, False, (2, 2, 3, 3, 3)), (1, 3, 64, 96)),
    "alexnet": ({"width_mult": 0.0625}, alexnet, (1, 3, 70, 63)),
    "lenet5": ({}, lenet, (2, 1, 28, 28)),
    "neural_style_transfer": ({"width_mult": 0.0625}, style, (1, 3, 12, 8)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_equal_their_formulas(name):
    options, formula, shape = NETWORKS[name]
    make = getattr(models, name)
    make = make.neural_style_transfer if name == "neural_style_transfer" else make
    model = make(**options, **({} if name == "neural_style_transfer" else {"num_classes": 5})).double().eval()
    rng = np.random.default_rng(0)
    own = {}
    for key, t in model.state_dict().items():
        n = max(np.prod(t.shape[1:], dtype=int), 1)
        if key.endswith("num_batches_tracked"):
            continue
        own[key] = rng.uniform(0.5, 1.5,
                               tuple(t.shape)) if t.ndim == 1 and not key.endswith(("bias", "mean")) else \
            rng.standard_normal(tuple(t.shape)) * np.sqrt(2 / n)
    model.load_state_dict({k: flow.tensor(v) for k, v in own.items()}, strict=False)
    x = rng.uniform(0, 1, shape)
    with flow.no_grad():
        y = model(flow.tensor(x)).numpy()
    want = formula(NumpyNet(own), x)
    assert y.shape == want.shape and np.abs(want).max() > 1e-3
    np.testing.assert_allclose(y, want, rtol=1e-7, atol=1e-9 * np.abs(want).max())
