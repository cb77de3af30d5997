"""Rows of functions on a million float32 values: single calls, and a chain of eight, eager and as a graph."""
from __future__ import annotations

import functools

import numpy as np

import flowedu as flow
import peers

SIZE = 1 << 20                     # 4 MB


def chain(lib, x, y):
    """Compute eight functions, which need eight passes over memory unless they are fused."""
    return lib.tanh(lib.log1p(lib.sqrt(lib.log(lib.exp(x) + y)) / y)) * x


def activations(lib, x, y):
    return lib.sigmoid(x), lib.nn.functional.gelu(x), lib.nn.functional.softplus(x), lib.erf(x)


def powers(lib, x, y):
    return lib.sin(x), lib.cos(x), lib.pow(y, x), lib.expm1(x)


def flat(out) -> list[np.ndarray]:
    return [t.numpy() for t in (out if isinstance(out, tuple) else (out,))]


def contenders(f, threads: int, graph: bool = False):
    r = np.random.default_rng(0)
    arrays = r.standard_normal(SIZE).astype(np.float32), r.uniform(1.5, 2.5, SIZE).astype(np.float32)
    ours = [flow.tensor(a) for a in arrays]

    class Graph(flow.nn.Graph):
        def build(self, x, y):
            return f(flow, x, y)

    made = Graph() if graph else None
    found = {"flowedu": (lambda: made(*ours)) if graph else (lambda: f(flow, *ours))}
    if peers.torch:
        theirs = [peers.torch.tensor(a) for a in arrays]
        ways = {"torch eager": functools.partial(f, peers.torch)}
        if graph and not peers.QUICK:
            ways["torch compile"] = peers.torch.compile(functools.partial(f, peers.torch))
        for name, way in ways.items():
            for a, b in zip(flat(found["flowedu"]()), flat(way(*theirs)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
            found[name] = functools.partial(way, *theirs)
    return found


def rows(row) -> list:
    """Return the rows. A graph runs the chain in one pass over memory."""
    make = functools.partial
    return [row("functions: a chain of 8 over 4 MB", make(contenders, chain), 1.5, inner=3),
            row("graph: the chain of 8 over 4 MB", make(contenders, chain, graph=True), 1.5, inner=3),
            row("functions: sigmoid, gelu, softplus, erf, 4 MB", make(contenders, activations), 1, inner=3),
            row("functions: sin, cos, pow, expm1, 4 MB", make(contenders, powers), 1, inner=3)]
