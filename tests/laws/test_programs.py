"""Law: a program of several tensor functions, with Python numbers, masks, and 0-dim tensors as operands, has
the same values, dtypes, and gradients eagerly and as an nn.Graph.
"""
import numpy as np
import pytest
from hypothesis import given, settings

import flowedu as flow

from .programs import programs, start, take

pytestmark = pytest.mark.filterwarnings("ignore:Using a target size")
many = settings(max_examples=6 * settings().max_examples)     # programs are cheap, and there are many of them


def assert_same_tensor(got, want) -> None:
    assert got.dtype is want.dtype and got.shape == want.shape, (got.dtype, got.shape, want.dtype, want.shape)
    a, b = ((t.float() if t.dtype in (flow.float16, flow.bfloat16) else t).detach().numpy()
            for t in (got, want))
    if b.dtype.kind != "f":
        np.testing.assert_array_equal(a, b)
        return
    rtol = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-4}.get(want.dtype.name, 1e-9)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1, np.max(np.abs(b), initial=0,
                                                                          where=np.isfinite(b))))


class Program(flow.nn.Graph):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def build(self, *values):
        return self.f(*values)


def make_initial_tensors(seed: int) -> list:
    return [flow.tensor(a) for a in start(seed)]


@many
@given(programs)
def test_a_graph_gives_the_same_values(program):
    steps, seed = program
    with np.errstate(all="ignore"):
        want, steps = take(steps, make_initial_tensors(seed), careful=True)
        if want:
            got = Program(lambda *values: tuple(take(steps, values)[0]))(*make_initial_tensors(seed))
            for g, w in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
                assert_same_tensor(g, w)


def make_initial_leaves(seed: int) -> list:
    """Return the initial tensors, where float32 and float64 require a gradient, without 16-bit floats."""
    return [flow.tensor(a, requires_grad=a.dtype.kind == "f") for a in start(seed) if a.dtype != np.float16]


def weighted_gradients(steps, values: list) -> list:
    """Return the gradients of the weighted initial floats plus all floating results, for the initial
    floats.
    """
    outs = [y.double() for y in take(steps, values)[0] if y.dtype.is_floating_point and y.requires_grad]
    weights = [flow.arange(y.numel(), dtype=y.dtype).reshape(y.shape) * 0.37 % 1 - 0.3 for y in outs]
    wanted = [v for v in values if v.requires_grad]
    total = sum([(y * w).sum() for y, w in zip(outs, weights)], sum(v.sum() for v in wanted).double())
    return flow.autograd.grad(total, wanted)


@many
@given(programs)
def test_a_graph_gives_the_same_gradients(program):
    """Compared where eager gradients are finite: a path that a graph cuts may end in 0 where the tape has 0 *
    nan.
    """
    steps, seed = program
    with np.errstate(all="ignore"):
        steps = [s for s in steps if s[0] not in ("to float16", "to bfloat16")]
        steps = take(steps, make_initial_leaves(seed), careful=True)[1]
        want = weighted_gradients(steps, make_initial_leaves(seed))
        got = Program(lambda *values: weighted_gradients(steps, list(values)))(*make_initial_leaves(seed))
        for g, w in zip(got, want, strict=True):
            assert_same_tensor(flow.where(w.isfinite(), g, w), w)
