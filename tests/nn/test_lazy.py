"""Lazy layers: after the first input or a loaded state, they equal the plain layers of that input size."""
import numpy as np
import pytest

import flowedu as flow
from common import refused
from flowedu import nn

# (lazy layer, plain layer, input)
LAYERS = [
    ("nn.LazyLinear(3)", "nn.Linear(5, 3)", (4, 5)), ("nn.LazyLinear(3, bias=False)",
                                                      "nn.Linear(5, 3, bias=False)", (5,)),
    ("nn.LazyConv1d(4, 3, padding=1)", "nn.Conv1d(5, 4, 3, padding=1)", (2, 5, 7)),
    ("nn.LazyConv2d(4, 3, groups=2)", "nn.Conv2d(6, 4, 3, groups=2)", (2, 6, 7, 5)),
    ("nn.LazyConv2d(4, 3)", "nn.Conv2d(6, 4, 3)", (6, 7, 5)),
    ("nn.LazyConv3d(2, 2)", "nn.Conv3d(3, 2, 2)", (1, 3, 4, 4, 4)),
    ("nn.LazyConvTranspose1d(4, 3)", "nn.ConvTranspose1d(5, 4, 3)", (2, 5, 7)),
    ("nn.LazyConvTranspose2d(4, 3, stride=2)", "nn.ConvTranspose2d(5, 4, 3, stride=2)", (2, 5, 3, 4)),
    ("nn.LazyConvTranspose3d(4, 2)", "nn.ConvTranspose3d(5, 4, 2)", (1, 5, 3, 4, 2)),
    ("nn.LazyBatchNorm1d(momentum=0.3)", "nn.BatchNorm1d(5, momentum=0.3)", (4, 5)),
    ("nn.LazyBatchNorm2d()", "nn.BatchNorm2d(5)", (4, 5, 3, 3)),
    ("nn.LazyBatchNorm3d()", "nn.BatchNorm3d(2)", (2, 2, 3, 3, 2)),
    ("nn.LazyBatchNorm2d(affine=False)", "nn.BatchNorm2d(5, affine=False)", (4, 5, 3, 3)),
    ("nn.LazyInstanceNorm1d(affine=False)", "nn.InstanceNorm1d(5, track_running_stats=True)", (4, 5, 3)),
    ("nn.LazyInstanceNorm2d()", "nn.InstanceNorm2d(5, affine=True, track_running_stats=True)",
     (4, 5, 3, 3)),
    ("nn.LazyInstanceNorm3d()", "nn.InstanceNorm3d(2, affine=True, track_running_stats=True)",
     (2, 2, 3, 3, 2)),
]


@pytest.mark.parametrize("lazy, plain, shape", LAYERS)
def test_a_lazy_layer_equals_the_plain_layer_after_the_first_input(lazy, plain, shape):
    x = flow.tensor(np.random.default_rng(0).standard_normal(shape), dtype=flow.float32)
    flow.manual_seed(3)
    want = eval(plain)
    y = want(x)
    flow.manual_seed(3)
    m = eval(lazy)
    assert isinstance(m, type(want)) and type(m) is not type(want) and repr(m).startswith("Lazy")
    before = dict(m.named_parameters())
    assert all(isinstance(p, nn.UninitializedParameter) for p in before.values())
    opt = flow.optim.SGD(before.values(), lr=0.1) if before else None
    got = m(x)
    assert type(m) is type(want) and repr(m) == repr(want) and vars(m).keys() == vars(want).keys()
    np.testing.assert_array_equal(got.detach().numpy(), y.detach().numpy())
    assert [*m.state_dict()] == [*want.state_dict()]
    after = dict(m.named_parameters())
    assert (after.keys() == before.keys() and all(after[k] is before[k] and type(after[k]) is nn.Parameter
                                                  for k in before))
    if opt is not None:
        got.square().sum().backward()
        opt.step()
        assert not (m.weight.detach().numpy() == want.weight.detach().numpy()).all()


@pytest.mark.parametrize("lazy, plain, shape", LAYERS)
def test_a_lazy_layer_equals_the_plain_layer_after_loading(lazy, plain, shape):
    saved = nn.Sequential(eval(plain))
    m = nn.Sequential(eval(lazy))
    if saved.state_dict():
        m.load_state_dict(saved.state_dict())
        assert type(m[0]) is type(saved[0])
    for a, b in zip(m.state_dict().values(), saved.state_dict().values(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_network_of_lazy_layers():
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(),
                        nn.LazyLinear(2)).double().eval()
    with refused(flow.errors.LazyTensorError, "no shape yet", at=False):
        class Net(nn.Graph):
            def __init__(self):
                super().__init__()
                self.net = net

            def build(self, x):
                return self.net(x)

        Net()(flow.ones(1, 3, 5, 5, dtype=flow.float64))
    y = net(flow.ones(1, 3, 5, 5, dtype=flow.float64))
    assert y.shape == (1, 2) and y.dtype is flow.float64 and not net[1].training and net[4].in_features == 36
    p = nn.UninitializedParameter()
    p.materialize((2, 3))
    assert type(p) is nn.Parameter and p.shape == (2, 3) and p.requires_grad
