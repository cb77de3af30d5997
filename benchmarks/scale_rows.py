"""Rows of scale.py, which measure seconds and bytes for each size.

`nature` is the expected exponent of a quantity: a layer of width n has n * n weights, and attention compares
each of n words with n words, but need not store the result. All other quantities are expected to grow
linearly at most.
"""
from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np

import flowedu as flow
import twins
from flowedu import nn
from flowedu.core.graph import program
from flowedu.core.trace import tracer
from flowedu.diagnostics import verify
from flowedu.fast.memory import memory_stats

STEP = 0.05                       # least seconds for repeating one size in each round
NOTICED = 1 << 20                 # least growth of a process in bytes that counts
MEMORY = ("memory", "graph's memory")          # quantities in bytes; the others are seconds
Measured = dict[str, float]


@dataclass
class Sweep:
    """A row of scale.py.

    measure: size -> {quantity: value}. axis: name of the size. nature: {quantity: expected exponent}, 1 by
    default. quick: number of sizes with --quick. rounds: how often all sizes are measured.
    """

    name: str
    axis: str
    sizes: tuple[int, ...]
    measure: Callable[[int], Measured]
    nature: dict[str, float] = field(default_factory=dict)
    quick: int = 4
    rounds: int = 3


def quickest(f: Callable[[], object], least: float = STEP) -> float:
    """Return the least seconds of many calls."""
    f()
    best, end = float("inf"), time.perf_counter() + least
    while True:
        start = time.perf_counter()
        f()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


def powers(base: int, first: int, last: int) -> tuple[int, ...]:
    return tuple(base ** i for i in range(first, last + 1))


# ---- training steps
def sgd(parameters):
    return flow.optim.SGD(parameters, lr=1e-3)


def classes(model, x: np.ndarray, many: int, graph: bool = True) -> Measured:
    """Measure a training step of a classifier."""
    y = np.arange(len(x)) % many
    make = twins.graph_step if graph else lambda flow, *parts: twins.eager_step(*parts)
    return stepped(make(flow, model, sgd(model.parameters()), nn.functional.cross_entropy), x, y, graph)


def numbers(model, x: np.ndarray, y: np.ndarray) -> Measured:
    """Measure a training step of a regression as a graph."""
    return stepped(twins.graph_step(flow, model, sgd(model.parameters()), nn.functional.mse_loss), x, y)


def stepped(step, x: np.ndarray, y: np.ndarray, graph: bool = True) -> Measured:
    x, y = flow.tensor(x), flow.tensor(y)
    found = {"step": quickest(lambda: step(x, y))}
    return {**found, "memory": planned(step)} if graph else found


def planned(graph) -> int:
    """Return the bytes of a graph's plan: arena, variables, and constants."""
    plan = graph._compiled.program.plan
    return plan.arena + sum(b.nbytes for b in plan.buffers if b.kind in ("variable", "const"))


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def batch(n: int, graph: bool = True) -> Measured:
    return classes(twins.mlp(flow, (256, 256, 256, 10)), noise(n, 256), 10, graph)


def width(n: int) -> Measured:
    return classes(twins.mlp(flow, (n, n, n, 10)), noise(64, n), 10)


def depth(n: int) -> Measured:
    return classes(twins.mlp(flow, (*[64] * (n + 1), 10)), noise(64, 64), 10)


def words(n: int) -> Measured:
    x = noise(1, n, 64)
    return numbers(twins.gpt_block(flow, n, 64, 2, fused=True), x, x)


def steps(n: int) -> Measured:
    return numbers(twins.recurrent(flow, "LSTM", 32, 32), noise(n, 8, 32), noise(n, 8, 32))


# ---- ops
class Chain(nn.Module):
    """Model with a chain of n ops after a multiplication by a weight."""

    def __init__(self, n: int):
        super().__init__()
        self.n, self.weight = n, nn.Parameter(flow.ones(8))

    def forward(self, x):
        y = x * self.weight
        for i in range(self.n):
            y = y.sin() if i % 2 else y.tanh()
        return y


class Reads(Chain):
    """Model with one weight that n ops read."""

    def forward(self, x):
        y = x * self.weight
        for _ in range(self.n):
            y = (y * self.weight).sin()
        return y


class Many(nn.Module):
    """Model with n parameters of 64 elements."""

    def __init__(self, n: int):
        super().__init__()
        self.parts = nn.ParameterList([nn.Parameter(flow.ones(64)) for _ in range(n)])

    def forward(self, x):
        y = x
        for p in self.parts:
            y = y * p
        return y


@contextmanager
def stages(found: Measured):
    """Context manager that times the stages of compilation by name. The remaining time is tracing."""
    with ExitStack() as stack:
        for name, where, function in (("derivative", tracer, "reverse"), ("passes", program, "run_passes"),
                                      ("plan", program, "make_plan"), ("executor", verify, "make_executor")):
            call = getattr(where, function)

            def timed(*args, name=name, call=call, **kwargs):
                start = time.perf_counter()
                try:
                    return call(*args, **kwargs)
                finally:
                    found[name] = found.get(name, 0.0) + time.perf_counter() - start
            stack.enter_context(patch.object(where, function, timed))
        yield


def resident() -> int:
    """Return the resident bytes of this process, or 0 if the system does not report them."""
    try:
        with open("/proc/self/statm", encoding="utf-8") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class Compiled:
    """Measurement that compiles model(size) and runs it once. It keeps the graphs, so none reuses memory."""

    def __init__(self, model: Callable[[int], nn.Module]):
        self.model, self.kept = model, []

    def __call__(self, n: int) -> Measured:
        found: Measured = {}
        model = self.model(n)
        graph = twins.graph_step(flow, model, sgd(model.parameters()), lambda y, _: y.sum())
        x = flow.ones(*next(model.parameters()).shape)
        before, start = resident(), time.perf_counter()
        with stages(found):
            graph._compile(x, x)
        whole = time.perf_counter() - start
        found = {"trace": whole - sum(found.values()), **found}
        found["plan"] += found.pop("executor")
        start = time.perf_counter()
        graph(x, x)
        found["first run"] = time.perf_counter() - start
        found["step"] = quickest(lambda: graph(x, x))
        more = resident() - before
        found["memory"], found["graph's memory"] = more if more > NOTICED else 0, planned(graph)
        self.kept.append(graph)
        return found


def eager_ops(n: int) -> Measured:
    """Measure the least time of a chain of eager ops and of its backward pass."""
    model, x = Chain(n), flow.ones(8)
    found = {"forward": float("inf"), "backward": float("inf"), "memory": 0}
    end = time.perf_counter() + STEP
    while True:
        before, start = memory_stats()["live"], time.perf_counter()
        loss = model(x).sum()
        middle = time.perf_counter()
        found["memory"] = memory_stats()["live"] - before
        loss.backward()
        now = time.perf_counter()
        found["forward"] = min(found["forward"], middle - start)
        found["backward"] = min(found["backward"], now - middle)
        if now > end:
            return found


def eager_updates(n: int) -> Measured:
    """Measure a step of Adam over n parameters, state_dict, and zero_grad."""
    model = Many(n)
    rule = flow.optim.Adam(model.parameters(), lr=1e-3)
    for p in model.parameters():
        p.grad = flow.ones(64)
    found = {"step": quickest(rule.step), "state_dict": quickest(model.state_dict)}
    start = time.perf_counter()
    rule.zero_grad()
    return {**found, "zero_grad": time.perf_counter() - start}


def sweeps() -> list[Sweep]:
    """Return all rows in order."""
    # 1, 3, 10 ... 100,000
    tens = tuple(sorted((*powers(10, 0, 5), *(3 * n for n in powers(10, 0, 4)))))
    fine = powers(4, 0, 7)
    return [
        Sweep("MLP, training graph", "batch", fine, batch, quick=6),
        Sweep("MLP, eager training", "batch", fine, lambda n: batch(n, False), quick=6),
        Sweep("MLP, training graph", "width", powers(2, 4, 11), width, {"step": 2, "memory": 2}, 7),
        Sweep("MLP, training graph", "depth", powers(4, 0, 5), depth),
        Sweep("attention, training graph", "length", powers(2, 5, 12), words, {"step": 2}, 6),
        Sweep("LSTM, training graph", "length", powers(4, 1, 6), steps, quick=5),
        Sweep("chain of ops, compiled", "ops", tens, Compiled(Chain), quick=7, rounds=1),
        Sweep("a weight read by n ops, compiled", "ops", tens[:9], Compiled(Reads), quick=6, rounds=1),
        Sweep("chain of ops, eager", "ops", tens, eager_ops, quick=9),
        Sweep("n parameters, compiled", "parameters", tens[:9], Compiled(Many), quick=6, rounds=1),
        Sweep("n parameters, eager Adam", "parameters", tens[:9], eager_updates, quick=7),
    ]
