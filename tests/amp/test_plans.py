"""Plans of graphs with 16-bit floats: the passes of float32, half the memory for activations, and the same
values.
"""
import sys

import numpy as np
import pytest

import flowedu as flow
from amp.test_every_op import EPSILON, HALVES, bits
from flowedu.nn import functional as F
from graph.making import make_graph


def predictor(model):
    return make_graph(lambda self, x: self.model(x), model=model)


def inverted() -> flow.nn.Module:
    """Block of MobileNetV2."""
    nn = flow.nn

    def conv(i, o, k, groups=1):
        return [nn.Conv2d(i, o, k, padding=k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]

    return nn.Sequential(*conv(8, 48, 1), nn.ReLU6(), *conv(48, 48, 3, 48), nn.ReLU6(), *conv(48, 16, 1),
                         *conv(16, 96, 1),
                         nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 10))


class Attention(flow.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = flow.nn.LayerNorm(32), flow.nn.Linear(32, 96), flow.nn.Linear(32, 32)
        self.register_buffer("mask", flow.triu(flow.ones(16, 16), 1) == 1)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).split(32, 2)
        scores = (q @ k.transpose(1, 2)) * 0.25
        return x + F.gelu(self.out(flow.softmax(scores.masked_fill(self.mask, float("-inf")), -1) @ v))


MODELS = {"inverted": (inverted, (16, 8, 14, 14)), "attention": (Attention, (16, 16, 32))}


def build_model_and_input(name: str, dtype):
    flow.manual_seed(0)
    build, shape = MODELS[name]
    x = flow.tensor(np.random.default_rng(0).normal(size=shape).astype("f4"))
    return build().eval().to(dtype), x.to(dtype)


def plan_of(name: str, dtype):
    model, x = build_model_and_input(name, dtype)
    graph = predictor(model)
    graph(x)
    return graph._compiled.program.plan


def shape_of(plan) -> list:
    """Return the ops of a plan, in order."""
    return [step.node.op.name if step.node is not None else "pack" for step in plan.steps]


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("name", MODELS)
def test_plans_equal_float32_with_half_the_activation_memory(name, half, monkeypatch):
    # only float32 weights are packed
    monkeypatch.setattr(sys.modules["flowedu.fast.passes.packed"], "FEW", 1_000_000)
    wide, narrow = plan_of(name, flow.float32), plan_of(name, half)
    assert shape_of(narrow) == shape_of(wide)
    activations = [sum(b.nbytes for b in plan.buffers if b.kind == "temp") for plan in (wide, narrow)]
    assert activations[0] / 2 <= activations[1] <= 0.51 * activations[0]  # layer norm statistics stay float32


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("name", MODELS)
def test_a_graph_equals_the_model_within_roundings(name, half):
    """Fused ops are rounded once, instead of after each op."""
    model, x = build_model_and_input(name, half)
    got, want = bits(predictor(model)(x)), bits(model(x))
    assert np.abs(got - want).max() <= 4 * EPSILON[half] * np.abs(want).max()
    exact = bits(build_model_and_input(name, flow.float32)[0](x.float()))
    assert np.abs(got - exact).max() <= 8 * EPSILON[half] * np.abs(exact).max()


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("chain", [
    lambda x, y: (x * 0.3 + y).relu().exp() - x, lambda x, y: F.relu6(x * y) / (y * y + 1.7),
    lambda x, y: flow.where(x > y, x * 1.1, y - 0.9), lambda x, y: F.gelu(x + y[:1]) * y.sigmoid(),
    lambda x, y: ((x + y) * (x + y)).float() * 0.1, lambda x, y: (x + 1).sum(0) * 3])
def test_a_fused_chain_equals_its_ops_bit_for_bit(half, chain):
    """Each op rounds its result, and so does the fused kernel."""
    r = np.random.default_rng(0)
    x, y = (flow.tensor(r.normal(size=(40, 300)).astype("f4")).to(half) for _ in range(2))

    class G(flow.nn.Graph):
        def build(self, x, y):
            return chain(x, y)

    graph = G()
    got, want = graph(x, y), chain(x, y)
    assert got.dtype is want.dtype
    np.testing.assert_array_equal(bits(got), bits(want))
    ops = [s.node.op.name for s in graph._compiled.program.plan.steps if s.node is not None]
    assert ops.count("fused") and ops.count("cast") <= 1, ops


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_casts_with_readers_are_kept(half):
    """A value that is read in float32 is computed in float32."""
    x = flow.tensor(np.random.default_rng(0).normal(size=(5, 7)).astype("f4")).to(half)

    class G(flow.nn.Graph):
        def build(self, x):
            return values(x)

    def values(x):
        wide, other = x.float().exp(), x.float().sin()
        return wide, wide.to(half), other.to(half), (other * 2).to(half)

    for got, want in zip(G()(x), values(x), strict=True):
        assert got.dtype is want.dtype
        np.testing.assert_array_equal(bits(got), bits(want))
