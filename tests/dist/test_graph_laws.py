"""Laws of rank graphs for random programs with gradients, on rows and grids of devices, some ops on other
devices: the ranks together compute the result of one device, send the predicted bytes, and never deadlock.
"""
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph
from flowedu.core.sbp.sbp import layout
from flowedu.core.values.place import Place
from flowedu.core.values.spec import Spec
from flowedu.distributed.ranks.base import options
from flowedu.ops import REGISTRY
from laws.test_modes import evaluate, expression

from .rank_graphs import Run, Single

HINT = REGISTRY["distribute_hint"]
few = settings(max_examples=max(10, settings().max_examples // 2))


@st.composite
def place(draw, k):
    """Draw some of the k devices, as a row or a grid."""
    devices = tuple(sorted(draw(st.lists(st.integers(0, k - 1), min_size=1, max_size=k, unique=True))))
    shapes = [(len(devices),)] + ([(2, 2)] if len(devices) == 4 else []) + ([(1, len(devices))])
    return Place(devices, draw(st.sampled_from(shapes)))


def sbp(draw, at, shape, partial=True):
    """Draw an SBP that is valid for the shape."""
    texts = ["B", "S0", "S1"] + ["P"] * partial
    found = tuple(draw(st.sampled_from(texts)) for _ in at.hierarchy)
    return found if layout(found, at).fits(shape) else ("B",) * len(at.hierarchy)


@few
@given(expression(), st.integers(0, 2**31), st.sampled_from([(5, 5), (6, 6)]), st.integers(2, 4), st.data())
def test_programs_with_gradients(steps, seed, shape, k, data):
    rng = np.random.default_rng(seed)
    x, b = rng.standard_normal(shape), rng.standard_normal(shape[1])
    first = data.draw(place(k))
    at = {"x": layout(sbp(data.draw, first, shape, False), first),
          "b": layout(tuple("B" if s == "S1" else s for s in sbp(data.draw, first, shape[1:] * 2, False)),
                      first)}
    casts, here = [], first
    for _ in range(data.draw(st.integers(0, 3))):
        there = data.draw(st.none() | place(k))
        target = there or here
        casts.append(dict(sbp=sbp(data.draw, target, shape), place=there, grad_place=here if there else None,
                          forced=True, grad_sbp=data.draw(st.none() | st.just(sbp(data.draw, here, shape)))))
        here = target

    def make():
        g = Graph("law")
        gx, gb = g.input("x", Spec(x.shape, flow.float64)), g.input("b", Spec(b.shape, flow.float64))
        with g.building():
            y, z = gx, gb
            for c in casts:
                y = HINT(y * 1.0, **c)
            if here != first:
                z = HINT(z, sbp=None, place=here, grad_place=first, forced=True)
            out = evaluate(steps, y, z)
        g.outputs = list(out)
        g.outputs += [d for d in gradients(g, [out[0]], [gx, gb]) if d is not None]
        return g

    want = Single(make())(x, b)
    options.timeout = 20                                       # a deadlock raises soon
    run = Run(make(), k, at)
    got = run(x, b)
    said = run.inferred.describe()
    for a, c in zip(got, want):
        np.testing.assert_allclose(a, c, rtol=1e-9, atol=1e-9 * max(1.0, float(np.max(np.abs(c), initial=0))),
                                   err_msg=said)
    assert sum(g.bytes_sent for g in run.ranks.values()) == run.inferred.bytes, said
    assert round(run.sent) == run.inferred.bytes, said           # measured bytes
    assert Run(make(), k, at).inferred.describe() == said
