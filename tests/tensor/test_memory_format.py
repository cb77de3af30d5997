"""Memory formats are strides equal to PyTorch's, in every function that takes one; values and gradients never
change.
"""
import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import refused

FORMATS = ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
MAKERS = ("empty_like", "zeros_like", "ones_like", "rand_like", "randn_like")
SHAPES = st.lists(st.integers(0, 4), min_size=4, max_size=5).map(tuple)


def strides(shape, order):
    """Return the strides of a contiguous tensor whose axes vary in this order, the last one fastest."""
    found, step = [0] * len(shape), 1
    for d in reversed(order):
        found[d], step = step, step * max(shape[d], 1)
    return tuple(found)


def order(name, shape):
    return {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4,
                                                                1)}.get(name, tuple(range(len(shape))))


def fits(name, shape):
    return {"channels_last": len(shape) == 4, "channels_last_3d": len(shape) == 5}.get(name, True)


def same_layout(t, expected):
    return all(n == 1 or a == b for n, a, b in zip(t.shape, t.stride(), expected)) or 0 in t.shape


def test_memory_formats_are_distinct_objects():
    for name in FORMATS:
        f = getattr(flow, name)
        assert isinstance(f, flow.memory_format) and repr(f) == f"flowedu.{name}"
        assert copy.deepcopy(f) is f
    assert len({getattr(flow, n) for n in FORMATS}) == 4


@given(SHAPES, st.sampled_from(FORMATS[:3]))
def test_a_format_is_the_strides_it_names(shape, name):
    x, f = flow.randn(*shape), getattr(flow, name)
    calls = {"contiguous": lambda: x.contiguous(memory_format=f), "to": lambda: x.to(memory_format=f),
             "clone": lambda: x.clone(memory_format=f), "flow.clone": lambda: flow.clone(x, memory_format=f),
             "to double": lambda: x.to(flow.float64, memory_format=f),
             "to copy": lambda: x.to(copy=True, memory_format=f),
             "empty": lambda: flow.empty(shape, memory_format=f),
             "full_like": lambda: flow.full_like(x, 2.0, memory_format=f),
             "randint_like": lambda: flow.randint_like(x, 2, memory_format=f),
             **{m: lambda m=m: getattr(flow, m)(x, memory_format=f) for m in MAKERS}}
    for what, call in calls.items():
        if not fits(name, shape):
            with refused(ValueError, "required rank", name):
                call()
            continue
        y = call()
        assert y.shape == x.shape and same_layout(y, strides(shape, order(name, shape))), what
        assert (y.is_contiguous(memory_format=f) and (y is x or y.data_ptr() != x.data_ptr()
                                                      or not x.numel())), what
        if what in ("contiguous", "to", "clone", "flow.clone", "to double", "to copy"):
            np.testing.assert_array_equal(y.numpy(), x.numpy())
    if fits(name, shape):
        y = x.contiguous(memory_format=f)
        assert y.contiguous(memory_format=f) is y and y.to(memory_format=f) is y
        assert y.contiguous().is_contiguous() and y.contiguous().tolist() == x.tolist()


@given(SHAPES, st.randoms())
def test_preserve_keeps_the_order_of_the_axes(shape, random):
    axes = list(range(len(shape)))
    random.shuffle(axes)
    x = flow.randn(*[shape[d] for d in axes]).permute(*[axes.index(d) for d in range(len(shape))])
    f = flow.preserve_format
    for y in (x.clone(memory_format=f), x.to(copy=True, memory_format=f),
              flow.zeros_like(x, memory_format=f)):
        assert same_layout(y, x.stride()) and y.data_ptr() != x.data_ptr() or not x.numel()
    np.testing.assert_array_equal(x.clone(memory_format=f).numpy(), x.numpy())
    assert x.to(memory_format=f) is x


@pytest.mark.torch
@given(st.lists(st.integers(1, 4), min_size=4, max_size=5).map(tuple), st.randoms(), st.sampled_from(FORMATS))
def test_strides_equal_pytorchs(shape, random, name):
    torch = pytest.importorskip("torch")
    axes = list(range(len(shape)))
    random.shuffle(axes)

    def both(f):
        out = []
        for m in (flow, torch):
            x = m.zeros(*shape).permute(*axes)
            try:
                out.append(f(m, x, getattr(m, name)))
            except (RuntimeError, TypeError, ValueError):
                out.append("refused")
        return out

    refusing = (lambda m, x, f: x.contiguous(memory_format=f),
                lambda m, x, f: m.empty(tuple(x.shape), memory_format=f),
                lambda m, x, f: x.is_contiguous(memory_format=f))
    for f in (*refusing[:2], lambda m, x, f: x.clone(memory_format=f),
              lambda m, x, f: x.to(m.float64, memory_format=f) if f is not m.preserve_format else x,
              lambda m, x, f: m.zeros_like(x, memory_format=f)):
        if name == "preserve_format" and f in refusing:            # PyTorch accepts it where nothing changes
            continue
        ours, theirs = both(f)
        assert (ours == "refused") == (theirs == "refused")
        assert ours == "refused" or same_layout(ours, theirs.stride())
    ours, theirs = both(refusing[2])
    assert ours == theirs or name == "preserve_format"


@pytest.mark.parametrize("nonsense", ["channels_last", "nonsense", 3, True, flow.float32])
def test_invalid_formats_are_refused(nonsense):
    x = flow.randn(1, 2, 3, 4)
    calls = [x.contiguous, x.clone, x.to, x.is_contiguous, lambda **k: flow.empty(1, 2, 3, 4, **k),
             lambda **k: flow.full_like(x, 1, **k), lambda **k: flow.nn.Linear(1, 1).to(**k),
             *(lambda m=m, **k: getattr(flow, m)(x, **k) for m in MAKERS)]
    for call in calls:
        with refused(TypeError, "memory_format", "flow.channels_last"):
            call(memory_format=nonsense)
    for call in calls[:1] + calls[3:5]:
        with refused(TypeError, "preserve_format"):
            call(memory_format=flow.preserve_format)


LAYERS = {
    "Conv2d": (lambda: flow.nn.Conv2d(4, 6, 3, padding=1, stride=2), (2, 4, 6, 5)),
    "depthwise": (lambda: flow.nn.Conv2d(4, 4, 3, groups=4), (2, 4, 6, 5)),
    "ConvTranspose2d": (lambda: flow.nn.ConvTranspose2d(4, 3, 3, stride=2, output_padding=1), (2, 4, 3, 5)),
    "Conv3d": (lambda: flow.nn.Conv3d(2, 3, 2), (2, 2, 3, 4, 3)),
    "BatchNorm2d": (lambda: flow.nn.BatchNorm2d(4), (3, 4, 2, 3)),
    "BatchNorm3d": (lambda: flow.nn.BatchNorm3d(2), (3, 2, 2, 3, 2)),
    "GroupNorm": (lambda: flow.nn.GroupNorm(2, 4), (3, 4, 2, 3)),
    "InstanceNorm2d": (lambda: flow.nn.InstanceNorm2d(4, affine=True), (3, 4, 2, 3)),
    "LayerNorm": (lambda: flow.nn.LayerNorm((2, 3)), (3, 4, 2, 3)),
    "MaxPool2d": (lambda: flow.nn.MaxPool2d(2, 1), (2, 3, 4, 5)),
    "AvgPool2d": (lambda: flow.nn.AvgPool2d(2), (2, 3, 4, 5)),
    "AdaptiveAvgPool2d": (lambda: flow.nn.AdaptiveAvgPool2d(2), (2, 3, 5, 4)),
    "MaxPool3d": (lambda: flow.nn.MaxPool3d(2), (2, 3, 4, 4, 2)),
    "Upsample": (lambda: flow.nn.Upsample(scale_factor=2, mode="bilinear"), (2, 3, 2, 3)),
    "PixelShuffle": (lambda: flow.nn.PixelShuffle(2), (2, 4, 2, 3)),
    "ReflectionPad2d": (lambda: flow.nn.ReflectionPad2d(1), (2, 3, 3, 4)),
    "Softmax": (lambda: flow.nn.Softmax(1), (2, 3, 3, 4)),
    "GELU": (flow.nn.GELU, (2, 3, 3, 4)),
    "PReLU": (lambda: flow.nn.PReLU(3), (2, 3, 3, 4)),
    "Linear": (lambda: flow.nn.Linear(4, 2), (2, 3, 3, 4)),
    "Flatten": (lambda: flow.nn.Sequential(flow.nn.Flatten(), flow.nn.Linear(12, 2)), (2, 3, 2, 2)),
    "Fold": (lambda: flow.nn.Unfold(2), (2, 3, 3, 4)),
}


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_keep_values_and_gradients(name, graph):
    make, shape = LAYERS[name]
    f = flow.channels_last if len(shape) == 4 else flow.channels_last_3d
    rng, found = np.random.default_rng(1), []
    data = rng.standard_normal(shape).astype(np.float32)
    for format, whole in ((None, False), (f, False), (f, True)):
        flow.manual_seed(0)
        layer = make()
        if whole:
            layer.to(memory_format=f)
        x = flow.tensor(data)
        x = (x if format is None else x.contiguous(memory_format=format)).requires_grad_()
        if graph:
            class Step(flow.nn.Graph):
                def __init__(self, layer=layer):
                    super().__init__()
                    self.layer = layer

                def build(self, x):
                    return self.layer(x)
            found.append([Step()(x.detach()).numpy()])
            continue
        y = layer(x)
        (y * y).sum().backward()
        found.append([y.numpy(), x.grad.numpy(), *(p.grad.numpy() for p in layer.parameters())])
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_module_in_channels_last_trains_as_before():
    nn, found = flow.nn, []
    x, y = flow.randn(4, 3, 6, 6), flow.arange(4) % 2
    for graph in (False, True):
        for format in (flow.contiguous_format, flow.channels_last):
            flow.manual_seed(1)
            net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
                                nn.Linear(64, 2))
            net.to(memory_format=format)
            assert net[0].weight.is_contiguous(memory_format=format) and net[4].weight.is_contiguous()
            optimizer, loss = flow.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), nn.CrossEntropyLoss()

            class Train(nn.Graph):
                def __init__(self, net=net, loss=loss, optimizer=optimizer):
                    super().__init__()
                    self.net, self.loss = net, loss
                    self.add_optimizer(optimizer)

                def build(self, x, y):
                    out = self.loss(self.net(x), y)
                    out.backward()
                    return out

            step = Train() if graph else None
            for _ in range(3):
                if not graph:
                    optimizer.zero_grad()
                    out = loss(net(x.to(memory_format=format)), y)
                    out.backward()
                    optimizer.step()
                else:
                    out = step(x.to(memory_format=format), y)
            found.append([out.numpy(), *(v.numpy() for n, v in net.state_dict().items()
                                         if "num_batches" not in n)])
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
