"""The fused MobileNetV2 block, computed row by row: it equals its three convolutions and replaces only such
blocks.
"""
import importlib
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.core.sbp.signature import signatures
from flowedu.ops import REGISTRY
from graph.making import make_graph

OP = REGISTRY["inverted_residual"]
sizes = st.tuples(st.integers(1, 3), st.integers(3, 17), st.integers(3, 17) | st.just(60), st.integers(1, 20),
                  st.integers(1, 70), st.integers(1, 40))


windows = st.tuples(*[st.integers(1, 3)] * 4), st.tuples(*[st.integers(0, 2)] * 4)  # kernel, strides; padding


@given(sizes, st.tuples(*windows), st.tuples(*windows) | st.just(((1, 1, 1, 1), (0, 0, 0, 0))), st.booleans(),
       st.booleans(), st.sampled_from((1, 2, 3)))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_block_equals_three_convolutions(dtype, shape, depthwise, first, residual, nan, threads):
    n, h, w, c, e, o = shape
    (kh, kw, *strides), pads = depthwise
    (fh, fw, *first_strides), first_pads = first
    if residual:
        kh = 3
        kw = 3
        strides = (1, 1)
        pads = (1, 1, 1, 1)
        o = c
        fh = 1
        fw = 1
        first_strides = (1, 1)
        first_pads = (0, 0, 0, 0)
    r = np.random.default_rng(h + w)

    def draw(*s):
        return r.standard_normal(s).astype(dtype)

    def norm(k):
        return [draw(k), draw(k), draw(k), r.uniform(0.5, 2, k).astype(dtype)]

    assume((h + sum(first_pads[:2]) - fh) // first_strides[0] + 1 + sum(pads[:2]) >= kh
           and (w + sum(first_pads[2:]) - fw) // first_strides[1] + 1 + sum(pads[2:]) >= kw)
    args = [draw(n, h, w, c), draw(e, c, fh, fw), *norm(e), draw(e, 1, kh, kw), *norm(e), draw(o, e, 1, 1),
            *norm(o)]
    if nan:
        args[0][0, 0, 0, 0] = np.nan  # reaches only dependent values, and no other image
    attrs = dict(strides=tuple(strides), pads=pads, epsilon=1e-3, low=0.0, high=6.0, last_low=-9.0,
                 last_high=8.0, residual=residual, first_strides=tuple(first_strides), first_pads=first_pads)
    before = flow.get_num_threads()
    flow.set_num_threads(threads)
    try:
        got = OP(*map(flow.tensor, args), **attrs).numpy()
    finally:
        flow.set_num_threads(before)
    want = OP.ref(*[a.astype(np.float64) for a in args], *[attrs[k] for k in OP.attrs])
    size = np.nanmax(np.abs(want), initial=1)
    bound = 64 * size * (4e-6 if dtype is np.float32 else 1e-14)
    np.testing.assert_allclose(got, want, rtol=0, atol=bound)


class Block(nn.Module):
    """expand, depthwise, and project as in torchvision; `kind` names a deviation."""

    def __init__(self, kind: str):
        super().__init__()
        strange = {"epsilon": "project", "epsilon of the first": "expand",
                   "epsilon of the second": "depthwise"}.get(kind)

        def norm(k, stage):
            return nn.BatchNorm2d(k, eps=1e-3 if stage == strange else 1e-5)

        act = nn.ReLU if kind in ("relu", "relu, then relu6") else nn.ReLU6
        then = {"relu, then relu6": nn.ReLU6, "relu6, then relu": nn.ReLU}.get(kind, act)
        options = {"stride": dict(stride=2, padding=1), "dilation": dict(padding=2, dilation=2)}
        depthwise = dict(groups=24) if kind == "groups" else dict(groups=48, **options.get(kind, {}))
        last = {"groups at the end": dict(groups=2), "stride at the end": dict(stride=2),
                "pads at the end": dict(padding=1),
                "window at the end": dict(kernel_size=3, padding=1)}.get(kind, {})
        first = {"begin": dict(kernel_size=3, stride=2, padding=1), "groups at first": dict(groups=2),
                 "dilation at first": dict(kernel_size=3, padding=2, dilation=2)}.get(kind, {})

        def of(c, o, **options):
            return nn.Conv2d(c, o, **{"kernel_size": 1, "bias": False, **options})

        self.first = nn.Sequential(of(3 if kind == "begin" else 16, 48, **first), norm(48, "expand"), act())
        middle = of(48, 48, **{"kernel_size": 3, "padding": 1, **depthwise})
        self.depth = nn.Sequential(middle, norm(48, "depthwise"), then())
        self.last = nn.Sequential(of(48, 16, **last), norm(16, "project"))
        if kind == "clip at the end":
            self.last.append(nn.ReLU6())
        # alone, it keeps the layout of the user's images
        self.after = Block("usual") if kind == "begin" else nn.Identity()
        self.kind = kind

    def forward(self, x):
        y = self.first(x)
        z = self.depth(y)
        if self.kind == "middle read twice":
            return self.last(z) + z[:, :16]
        z = self.last(z)
        if self.kind == "read twice":
            return z + y[:, :16]
        if self.kind == "sum of another":
            return z + x * 2
        if self.kind == "sum read twice":
            return (z + x) * z
        return self.after(z) if z.shape != x.shape or self.kind in ("no sum", "begin") else z + x


NOT_A_BLOCK = ("read twice", "middle read twice", "groups", "epsilon", "epsilon of the first",
               "epsilon of the second", "relu6, then relu", "relu, then relu6", "small", "few",
               "groups at the end", "stride at the end", "pads at the end", "window at the end",
               "groups at first", "dilation at first", "dilation")


@pytest.mark.parametrize("kind, wanted", [("usual", [True]), ("relu", [True]), ("no sum", [False]),
                                          ("stride", [False]),
                                          ("begin", [False, True]), ("clip at the end", [True]),
                                          ("sum of another", [False]), ("sum read twice", [False]),
                                          *((kind, []) for kind in NOT_A_BLOCK)])
@pytest.mark.usefixtures("two_threads", "every_processor")
def test_inference_graphs_use_the_block(kind, wanted):
    flow.manual_seed(0)
    block = Block(kind)
    x = flow.randn(*{"few": (1, 16, 8, 28), "small": (64, 16, 6, 6),
                     "begin": (4, 3, 56, 56)}.get(kind, (4, 16, 28, 28)))
    block(x)                                                 # statistics other than 0 and 1
    block.eval()
    want = block(x).detach().numpy()

    predict = make_graph(lambda self, x: self.block(x), block=block)
    got = predict(x).numpy()
    found = [n.attrs[OP.attr_index["residual"]] for n in predict._compiled.graph.nodes if n.op is OP]
    assert found == wanted
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(predict(x).numpy(), got)
    with flow.no_grad():
        block.last[0].weight.mul_(-2)                        # the packed weights are packed again
    np.testing.assert_allclose(predict(x).numpy(), block(x).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shown, wanted", [("expanded", []), ("filtered", []), ("projected", [False]),
                                           ("sum", [True])])
@pytest.mark.usefixtures("two_threads", "every_processor")
def test_a_returned_intermediate_value_is_computed(shown, wanted):
    flow.manual_seed(0)
    block, x = Block("usual"), flow.randn(4, 16, 28, 28)
    block(x)
    block.eval()

    def build(self, x):
        y = self.block.first(x)
        z = self.block.depth(y)
        w = self.block.last(z)
        values = dict(expanded=y, filtered=z, projected=w, sum=w + x)
        return values["sum"], values[shown]

    predict = make_graph(build, block=block)
    got = predict(x)
    assert [n.attrs[OP.attr_index["residual"]] for n in predict._compiled.graph.nodes if n.op is OP] == wanted
    for a, b in zip(got, build(SimpleNamespace(block=block), x)):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("two_threads", "every_processor")
def test_no_convolution_belongs_to_two_blocks():
    """Where depthwise and 1x1 convolutions alternate, a 1x1 convolution could end one block and begin another
    and would run twice.
    """

    def norm():
        return (nn.BatchNorm2d(32), nn.ReLU6())

    def depthwise():
        return (nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False), *norm())

    def one():
        return (nn.Conv2d(32, 32, 1, bias=False), *norm())

    net = nn.Sequential(*one(), *depthwise(), *one(), *depthwise(), *one(), *depthwise(), *one()).eval()
    predict, x = make_graph(lambda self, x: self.net(x), net=net), flow.randn(4, 32, 28, 28)
    np.testing.assert_allclose(predict(x).numpy(), net(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    ops = [n.op.name for n in predict._compiled.graph.nodes]
    convolutions = 3 * ops.count("inverted_residual") + ops.count("conv2d_last_norm")
    assert convolutions == 7


@pytest.fixture
def every_processor(monkeypatch):
    """Make the pass decide as on a CPU with 32-byte vectors, where it is otherwise disabled."""
    module = importlib.import_module("flowedu.fast.passes.inverted_residual")
    monkeypatch.setattr(module, "kernels", SimpleNamespace(ISA="v3"))


@pytest.fixture
def two_threads():
    before = flow.get_num_threads()
    flow.set_num_threads(2)
    yield
    flow.set_num_threads(before)


def test_images_and_channels_of_the_result_may_be_split():
    r = np.random.default_rng(0)

    def norm(k):
        return [r.uniform(0.5, 2, k) for _ in range(4)]

    args = [r.standard_normal((4, 6, 5, 3)), r.standard_normal((9, 3, 1, 1)), *norm(9),
            r.standard_normal((9, 1, 3, 3)), *norm(9), r.standard_normal((8, 9, 1, 1)), *norm(8)]
    attrs = dict(strides=(2, 1), epsilon=1e-3, low=0.0, high=6.0, last_low=-1.0, last_high=1.0)
    whole = OP(*map(flow.tensor, args), **attrs).numpy()
    found = set(signatures(OP, [flow.tensor(a).spec for a in args], OP.complete(attrs)))
    for split, axis in (("x",), 0), (("w3", "gamma3", "beta3", "mean3", "var3"), 3):
        assert (*("S0" if n in split else "B" for n in OP.inputs), f"S{axis}") in found
        halves = [[flow.tensor(np.split(a, 2)[i] if n in split else a) for n, a in zip(OP.inputs, args)]
                  for i in (0, 1)]
        parts = [OP(*half, **attrs).numpy() for half in halves]
        np.testing.assert_allclose(np.concatenate(parts, axis), whole, rtol=1e-12, atol=1e-12)
    assert not any("P" in s for s in found)


def test_other_sequences_of_layers_are_refused():
    def one(*s):
        return flow.ones(*s)

    def norms(k):
        return [one(k)] * 4

    good = [one(1, 5, 5, 4), one(8, 4, 1, 1), *norms(8), one(8, 1, 3, 3), *norms(8), one(6, 8, 1, 1),
            *norms(6)]
    attrs = dict(epsilon=1e-3, low=0.0, high=6.0, last_low=-1e9, last_high=1e9)
    assert OP(*good, **attrs).shape == (1, 3, 3, 6)
    for i, w, words in ((1, one(8, 4, 1), "w1"), (6, one(4, 2, 3, 3), "w2"), (11, one(6, 8, 3, 3), "w3")):
        with pytest.raises(ValueError, match=f"{words} does not fit"):
            OP(*good[:i], w, *good[i + 1:], **attrs)
    with pytest.raises(ValueError, match="x cannot be added"):
        OP(*good, **attrs, residual=True)
