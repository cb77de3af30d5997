"""Cases of the laws of chapter 2: matrix products, values that are broadcast, and recorded calls."""
from __future__ import annotations

import functools
import random

import numpy as np

import flowedu as flow
from flowedu.core.ops.call import Rule
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.reverse import Call
from flowedu_course.laws import shape


def draw_product(rng, size):
    """Draw (rows, inner size, columns, batch axes, transpose a?, transpose b?, no batch axes for b?)."""
    m, k, n = (rng.randint(1, 1 + size) for _ in range(3))
    batch = tuple(rng.randint(1, 2) for _ in range(rng.choice((0, 0, 1, 2))))
    shared = bool(batch) and rng.random() < 0.5
    return m, k, n, batch, rng.random() < 0.5 and not shared, rng.random() < 0.5, shared


def smaller_products(case):
    m, k, n, batch, ta, tb, shared = case
    if batch:
        yield m, k, n, batch[1:], ta, tb, shared and len(batch) > 1
    for flags in ((False, tb), (ta, False)):
        if flags != (ta, tb):
            yield m, k, n, batch, *flags, shared
    for i, v in enumerate((m, k, n)):
        if v > 1:
            yield *(w - (i == j) for j, w in enumerate((m, k, n))), batch, ta, tb, shared


def make_product(case):
    m, k, n, batch, ta, tb, shared = case
    rng = np.random.default_rng(1)
    a = rng.standard_normal((*batch, *((k, m) if ta else (m, k))))
    b = rng.standard_normal((*(() if shared else batch), *((n, k) if tb else (k, n))))
    w = rng.standard_normal((*batch, m, n))
    f = lambda x, y: (REGISTRY["matmul"](x, y, transpose_a=ta, transpose_b=tb) * flow.tensor(w)).sum()
    return a, b, f


def describe_product(case):
    m, k, n, batch, ta, tb, shared = case
    a, b, _ = make_product(case)
    flags = ", ".join(t for t, on in (("transpose_a", ta), ("transpose_b", tb)) if on)
    return f"a {a.shape}, b {b.shape}" + (f", {flags}" if flags else "")


def draw_stretched(rng, size):
    s = shape(rng, size, zero=False)
    front = tuple(rng.randint(1, 3) for _ in range(rng.randint(0, 2)))
    return s, (*front, *(rng.randint(1, 3) if n == 1 else n for n in s))


def smaller_stretched(case):
    s, big = case
    extra = len(big) - len(s)
    if extra:
        yield s, big[1:]
    for i in range(len(s)):
        yield s[:i] + s[i + 1:], big[:extra + i] + big[extra + i + 1:]


def describe_stretched(case):
    return f"grad {case[1]} of a value of shape {case[0]}"


class ScaledSum:
    """An artificial op y = sum(weights * inputs), whose gradients are dy * weights.

    A weight of 1 returns the gradient object dy itself, as add does. All `outputs` outputs are equal.
    """

    variadic, outputs, saved = False, ("y",), ()

    def __init__(self, weights, outputs=1):
        self.inputs = tuple(f"x{i}" for i in range(len(weights)))
        self.rules = {n: Rule(functools.partial(self._scale, w), [("grad", i) for i in range(outputs)])
                      for n, w in zip(self.inputs, weights)}

    @staticmethod
    def _scale(weight, *gradients):
        first, *others = [g for g in gradients if g is not None]
        total = sum(others, first)
        return total if weight == 1 else total * weight


def draw_calls(rng: random.Random, size):
    """Draw (number of leaves, [(indices of inputs, weights)], seeds [(value, gradient)], targets)."""
    leaves = rng.randint(1, 2)
    calls, n = [], leaves
    for _ in range(rng.randint(1, 2 * size)):
        k = rng.randint(1, min(2, n))
        calls.append((tuple(rng.randrange(n) for _ in range(k)), tuple(rng.randint(-2, 3) for _ in range(k))))
        n += 1
    seeds = ((n - 1, 1),) if rng.random() < 0.6 else ((rng.randrange(leaves, n), 1), (n - 1, 2))
    # An intermediate value as target.
    between = [rng.randrange(n)] if rng.random() < 0.3 else []
    targets = {*rng.sample(range(leaves), rng.randint(1, leaves)), *between}
    return leaves, tuple(calls), seeds, tuple(sorted(targets))


# As many calls as LeNet's training step: a chain of differences, so that gradients stay small.
LONG_CHAIN = (1, tuple(((i // 2 * 2,), (1 - 2 * (i % 3 == 0),)) for i in range(400)), ((400, 1),), (0,))


def smaller_calls(case):
    leaves, calls, seeds, targets = case
    n = leaves + len(calls)
    if len(calls) > 20 and seeds == ((n - 1, 1),):
        half = len(calls) // 2
        yield leaves, calls[:half], ((leaves + half - 1, 1),), tuple(t for t in targets if t < leaves + half)
    if len(calls) > 1 and n - 1 not in targets and not any(v == n - 1 for v, _ in seeds if len(seeds) > 1):
        yield leaves, calls[:-1], ((n - 2, 1),), targets
    if len(seeds) > 1:
        for s in seeds:
            yield leaves, calls, (s,), targets
    if len(targets) > 1:
        yield from ((leaves, calls, seeds, (t,)) for t in targets)
    for i, (ins, ws) in enumerate(calls):
        if len(ins) > 1:
            for j in range(len(ins)):
                yield leaves, (*calls[:i], ((ins[j],), (ws[j],)), *calls[i + 1:]), seeds, targets


def describe_calls(leaves, calls):
    """Return (names of the values, text of the program)."""
    names = [f"x{i}" for i in range(leaves)] + [f"v{i}" for i in range(len(calls))]
    sums = [" + ".join(f"{w}*{names[j]}" for j, w in zip(*c)) for c in calls]
    return names, "; ".join(f"{names[leaves + i]} = {s}" for i, s in enumerate(sums))


# A call with two outputs, which the next two calls read.
TWO_OUTPUTS = (1, (((0,), (2,)), ((1,), (1,)), ((2,), (3,)), ((3,), (1,)), ((4, 3), (1, 2))), ((5, 1),), (0,))


def has_two_outputs(case, number):
    """Return True if later calls read two equal outputs of a call, in turn. Gradients of both are added."""
    leaves, _, seeds, targets = case
    return number % 3 == 2 and leaves + number not in (*targets, *(v for v, _ in seeds))


def run_walk(case, yours, times=1):
    """Return (results of yours with and without `visit`, visited call numbers, changed seeds).

    If `times` is not 1, visit() returns calls with weights that are `times` as large, of recomputed inputs,
    and there is no result without it.
    """
    leaves, calls, seeds, targets = case
    values = [flow.tensor(1.0) for _ in range(leaves + len(calls))]
    # A second result of a third of the calls is not used.
    more = [(flow.tensor(1.0),) * (i % 3 == 1 or has_two_outputs(case, i)) for i in range(len(calls))]

    def read(j, reader, values):
        is_second = j >= leaves and has_two_outputs(case, j - leaves) and reader % 2
        return more[j - leaves][0] if is_second else values[j]

    def record(i, k, values):
        ins, weights = calls[i]
        scaled = ScaledSum([k * w for w in weights], 1 + has_two_outputs(case, i))
        return Call(scaled, tuple(read(j, i, values) for j in ins), (), (values[leaves + i], *more[i]))

    records = [record(i, 1, values) for i in range(len(calls))]
    fresh = [flow.tensor(1.0) for _ in values]
    others = [] if times == 1 else [record(i, times, fresh) for i in range(len(calls))]
    begin = [(values[v], flow.tensor(float(g))) for v, g in seeds]
    visited: list = []

    def visit(call):
        visited.append(next(i for i, r in enumerate(records) if r is call))
        return None if times == 1 else others[visited[-1]]

    wanted = [values[t] for t in targets]
    results = [yours(records, begin, wanted, visit)]
    if times == 1:
        results.append(yours(records, begin, wanted))
    changed = [(v, g, float(s.item())) for (v, g), (_, s) in zip(seeds, begin) if s.item() != g]
    return results, visited, changed
