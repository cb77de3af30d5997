"""Running statistics of BatchNorm and InstanceNorm: every batch of a random run of training and evaluation,
against NumPy.
"""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.nn import functional as F

from .formulas.norms import per_channel, scaled, standard
from .formulas.table import Draw

few = settings(max_examples=max(8, settings().max_examples // 3))
AXES = {"BatchNorm1d": (0, 1), "BatchNorm2d": (2,), "BatchNorm3d": (3,), "SyncBatchNorm": (0, 1, 2, 3),
        "InstanceNorm1d": (1,), "InstanceNorm2d": (2,), "InstanceNorm3d": (3,)}


class Remembered:
    """Reference for a layer with running statistics."""

    def __init__(self, channels, own, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        self.own = own
        self.eps = eps
        self.momentum = momentum
        self.track = track_running_stats
        self.mean, self.var, self.batches = np.zeros(channels), np.ones(channels), 0

    def __call__(self, x, training, alone):
        """Normalize x; with alone=True, each sample by itself."""
        axes = tuple(range(2, x.ndim)) if alone else (0, *range(2, x.ndim))
        if training and self.track:
            self.batches += not alone                    # instance norm does not count
            share = self.momentum if self.momentum is not None else 1 / self.batches
            for name, new in (("mean", x.mean(axes)), ("var", x.var(axes, ddof=1))):
                new = new.mean(0) if alone else new
                setattr(self, name, (1 - share) * getattr(self, name) + share * new)
        if training or not self.track:
            y = standard(x, axes, self.eps)
        else:
            y = (x - per_channel(self.mean, x.ndim)) / np.sqrt(per_channel(self.var, x.ndim) + self.eps)
        return scaled(y, self.own.get("weight"), self.own.get("bias"))


def options_of(d, name):
    options = d.options(eps=(0.1,), momentum=(0.3, 1.0), affine=(True, False),
                        track_running_stats=(True, False))
    return options | ({"momentum": None} if "Batch" in name and d.one_of(True, False, False) else {})


def check_state(module, formula):
    state = module.state_dict()
    tracked = {"running_mean", "running_var", "num_batches_tracked"} if formula.track else set()
    assert set(state) == set(formula.own) | tracked
    if formula.track:
        np.testing.assert_allclose(state["running_mean"].numpy(), formula.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state["running_var"].numpy(), formula.var, rtol=1e-9, atol=1e-12)
        assert state["num_batches_tracked"].tolist() == formula.batches


@pytest.mark.parametrize("name", AXES)
@few
@given(data=st.data())
def test_running_statistics_follow_their_formula_over_any_batches(name, data):
    d = Draw(data)
    alone = "Instance" in name
    axes = d.one_of(*AXES[name])
    channels = d.one_of(1, 3)
    options = options_of(d, name)
    module = getattr(nn, name)(channels, **options).double()
    assert sorted(k for k, _ in module.named_parameters()) == \
        (["bias", "weight"] if options.get("affine", not alone) else [])
    own = {k: d.rng.standard_normal(channels) for k, _ in module.named_parameters()}
    module.load_state_dict({k: flow.tensor(v) for k, v in own.items()}, strict=False)
    formula = Remembered(channels, own, **({"track_running_stats": False} if alone else {}) | options)
    for _ in range(d.one_of(1, 3)):
        training = d.one_of(True, True, False)
        module.train(training)
        x = d.rng.standard_normal((d.one_of(2, 3), channels, *(d.one_of(2, 3) for _ in range(axes)))) * 2 + 1
        y = module(flow.tensor(x))
        np.testing.assert_allclose(y.detach().numpy(), formula(x, training, alone), rtol=1e-8, atol=1e-9)
        check_state(module, formula)
        if alone:                                        # also without a batch axis
            module.eval()
            one = module(flow.tensor(x[0])).detach().numpy()
            np.testing.assert_allclose(one, formula(x[:1], False, True)[0], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
@few
@given(data=st.data())
def test_functions_update_the_passed_statistics(name, data):
    """Either of the two may be missing; without training neither changes."""
    d = Draw(data)
    x, alone = d.rng.standard_normal((3, 2, 4)), name == "instance_norm"
    mean, var = d.rng.standard_normal(2), d.positive(2)
    found = {k: flow.tensor(v) for k, v in d.maybe(running_mean=lambda: mean,
                                                   running_var=lambda: var).items()}
    training = d.one_of(True, False) or len(found) < 2
    options = {"use_input_stats" if alone else "training": training} | d.options(momentum=(0.3,))
    getattr(F, name)(flow.tensor(x), **found, **options)
    formula = Remembered(2, {}, momentum=options.get("momentum", 0.1))
    formula.mean, formula.var = mean, var
    formula(x, training, alone)
    for k, t in found.items():
        np.testing.assert_allclose(t.numpy(), getattr(formula, k[8:]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_convert_sync_batchnorm(training):
    """Converts every nested batch norm with its options, statistics, parameters, and mode, and no other
    layer.
    """
    net = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3, eps=0.1, momentum=0.7),
                        nn.Sequential(nn.BatchNorm2d(3, affine=False, track_running_stats=False),
                                      nn.InstanceNorm2d(3)))
    x = flow.randn(4, 2, 3, 3)
    net(x)
    net.train(training)
    net[2][1].train(not training)
    state = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    names, modes = [n for n, _ in net.named_modules()], [m.training for m in net.modules()]
    new = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    kinds = [type(m).__name__ for m in new.modules()]
    assert kinds == ["Sequential", "Conv2d", "SyncBatchNorm", "Sequential", "SyncBatchNorm", "InstanceNorm2d"]
    assert [n for n, _ in new.named_modules()] == names and [m.training for m in new.modules()] == modes
    assert (new[1].eps == 0.1 and new[1].momentum == 0.7 and new[2][0].weight is None
            and new[2][0].running_mean is None)
    for k, v in new.state_dict().items():
        np.testing.assert_array_equal(v.numpy(), state.pop(k), err_msg=k)
    assert not state
    alone = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3).train(training))
    assert type(alone) is nn.SyncBatchNorm and alone.training is training


def test_reset_running_stats():
    m = nn.BatchNorm1d(2)
    m(flow.randn(4, 2))
    m.reset_running_stats()
    assert (m.running_mean.tolist() == [0, 0] and m.running_var.tolist() == [1, 1]
            and m.num_batches_tracked.item() == 0)
    with flow.no_grad():
        m.weight.fill_(3.0)
    m.reset_parameters()
    assert m.weight.tolist() == [1, 1] and m.bias.tolist() == [0, 0]
