"""Laws of chapter 2: shapes from axis equations, gradients, the backward pass. The library calls `yours`."""
from __future__ import annotations

import random

import numpy as np

from flowedu.learn.laws import Law, Words, counted, pair, same, shape

EPS = 1e-5



# ---- shapes from letters
def _equations(rng, size):
    letters = "abcdk"[:1 + min(size, 4)]
    sizes = {c: rng.randint(1, 2 + size) for c in letters}
    terms = ["".join(rng.sample(letters, rng.randint(1, len(letters)))) for _ in range(rng.randint(1, 2))]
    seen = sorted(set("".join(terms)))
    outs = ["".join(rng.sample(seen, rng.randint(0, len(seen)))) for _ in range(rng.choice((1, 1, 2)))]
    return ",".join(terms) + "->" + ",".join(outs), tuple(tuple(sizes[c] for c in t) for t in terms)


def _shapes_judged(case, yours):
    from flowedu.core.values.dtype import float32
    from flowedu.core.values.spec import Spec
    equation, shapes = case
    table = {c: n for t, s in zip(equation.partition("->")[0].split(","), shapes) for c, n in zip(t, s)}
    want = [tuple(table[c] for c in term) for term in equation.partition("->")[2].split(",")]
    op = type("op", (), {"name": "yours", "inputs": ("x", "y")[:len(shapes)], "variadic": False,
                         "outputs": "zv"[:len(want)]})()
    got = yours(op, equation, [Spec(s, float32) for s in shapes])
    said = f"  smallest case   {equation} of {' and '.join(map(str, shapes))}"
    if len(got) != len(want) or not all(map(same, got, want)):
        return [said, *pair("should be", got, want)]
    return _two_sizes(op, equation, shapes, yours)


def _two_sizes(op, equation, shapes, yours):
    """One axis longer, of a letter that another input has, too: no shape fits."""
    from flowedu.core.values.dtype import float32
    from flowedu.core.values.spec import Spec
    from flowedu.errors import ShapeError
    terms = equation.partition("->")[0].split(",")
    both = [c for c in terms[0] if c in terms[-1]] if len(terms) > 1 else []
    if not both:
        return None
    at = terms[0].index(both[0])
    bad = ((*shapes[0][:at], shapes[0][at] + 1, *shapes[0][at + 1:]), shapes[1])
    try:
        got = yours(op, equation, [Spec(s, float32) for s in bad])
    except ShapeError:
        return None
    return [f"  smallest case   {equation} of {' and '.join(map(str, bad))}: {both[0]} has two sizes",
            *pair("should be", got, Words("a ShapeError, as `sizes` raises it"))]


def _equation(case):
    return f"{case[0]} of {' and '.join(map(str, case[1]))}"


letters = Law("the sizes that the letters have", _equations, _shapes_judged, told=_equation)


# ---- gradients of elementwise ops
def _points(rng, size):
    return [round(rng.uniform(-1, 1) * size, 2) for _ in range(rng.randint(1, size))]


def _smaller_points(case):
    if len(case) > 1:
        yield from ([x] for x in case)
    plain = [[0.5], [1.0], [-0.5]]
    yield from plain[:plain.index(case)] if case in plain else plain


def _slope(name, x, order):
    """(yours, by differences) of the first or second derivative of sum(op)."""
    import flowedu as flow
    from flowedu.core.ops.define import REGISTRY
    f = REGISTRY[name.partition("_")[0]]

    def first(at, graph=False):
        t = flow.tensor(at, dtype=flow.float64, requires_grad=True)
        y = f(t).sum()
        return t, flow.autograd.grad(y, t, create_graph=graph)[0]

    x = np.asarray(x, np.float64)
    if order == 1:
        value = lambda at: f(flow.tensor(at, dtype=flow.float64)).numpy()
        return first(x)[1].numpy(), (value(x + EPS) - value(x - EPS)) / (2 * EPS)
    t, g = first(x, True)
    own = flow.autograd.grad(g.sum(), t)[0].numpy() if g.requires_grad else np.zeros_like(x)
    return own, (first(x + EPS)[1].numpy() - first(x - EPS)[1].numpy()) / (2 * EPS)


def _slopes(order):
    def judge(case, yours):
        for name in yours:
            own, right = _slope(name, case, order)
            wrong = np.argwhere(~np.isclose(own, right, rtol=1e-4, atol=1e-6))
            if wrong.size:
                i = int(wrong[0][0])
                lines = [f"  smallest case   {name.partition('_')[0]} at x = {case[i]}, dy = 1.0"]
                what = "the gradient" if order == 1 else "second"
                if order == 2:
                    a, b = _slope(name, [case[i]], 1)
                    lines.append(f"  first gradient  yours {a[0]:.4f}, by differences {b[0]:.4f}   ok")
                lines.append(f"  {what:15s} yours {own[i]:.4f}, by differences {right[i]:.4f}")
                if order == 2:
                    lines.append("  a factor has no history: what went through numpy() or detach() is a constant")
                return lines
        return None
    return judge


_at = lambda case: f"x = {', '.join(map(str, case))}, dy = 1.0"
slope = Law("as by differences", _points, _slopes(1), _smaller_points, told=_at)
curve = Law("its own gradient is right, too", _points, _slopes(2), _smaller_points, told=_at)
far = Law("as by differences far from 0, too", lambda rng, size: [rng.choice((-1.0, 1.0)) * 10 ** rng.randint(1, 4)],
          _slopes(1), lambda case: [[x / 10] for x in case if abs(x) > 10], told=_at)


def _kept_judged(case, yours):
    from flowedu.core.ops.define import REGISTRY
    for name in yours:
        op = REGISTRY[name.partition("_")[0]]
        kept = [op.inputs[i] if i >= 0 else op.outputs[~i] for i in op.saved]
        if len(kept) > 1:
            return [f"  {name} names {' and '.join(sorted(kept, reverse=True))}: both are kept until backward",
                    "  one is enough, and the memory of the other is free at once"]
    return None


kept = Law("one value is kept, not two", lambda rng, size: None, _kept_judged, cases=1)


# ---- the gradient of a matrix product
def _products(rng, size):
    m, k, n = (rng.randint(1, 1 + size) for _ in range(3))
    batch = tuple(rng.randint(1, 2) for _ in range(rng.choice((0, 0, 1, 2))))
    shared = bool(batch) and rng.random() < 0.5
    return m, k, n, batch, rng.random() < 0.5 and not shared, rng.random() < 0.5, shared


def _smaller_products(case):
    m, k, n, batch, ta, tb, shared = case
    if batch:
        yield m, k, n, batch[1:], ta, tb, shared and len(batch) > 1
    for flags in ((False, tb), (ta, False)):
        if flags != (ta, tb):
            yield m, k, n, batch, *flags, shared
    for i, v in enumerate((m, k, n)):
        if v > 1:
            yield *(w - (i == j) for j, w in enumerate((m, k, n))), batch, ta, tb, shared


def _product(case):
    import flowedu as flow
    from flowedu.core.ops.define import REGISTRY
    m, k, n, batch, ta, tb, shared = case
    rng = np.random.default_rng(1)
    a = rng.standard_normal((*batch, *((k, m) if ta else (m, k))))
    b = rng.standard_normal((*(() if shared else batch), *((n, k) if tb else (k, n))))
    w = rng.standard_normal((*batch, m, n))
    f = lambda x, y: (REGISTRY["matmul"](x, y, transpose_a=ta, transpose_b=tb) * flow.tensor(w)).sum()
    return a, b, f


def _named(case):
    m, k, n, batch, ta, tb, shared = case
    a, b, _ = _product(case)
    flags = ", ".join(t for t, on in (("transpose_a", ta), ("transpose_b", tb)) if on)
    return f"a {a.shape}, b {b.shape}" + (f", {flags}" if flags else "")


def _case(case):
    return f"  smallest case   {_named(case)}"


def _misshapen(case, yours):
    """The lines of a failure whose matrix has other sizes than its operand; batches in front are summed by the library."""
    import flowedu as flow
    from flowedu.core.ops.record import parameters
    m, _, n, batch, ta, tb, _ = case
    a, b, _ = _product(case)
    given = {"dy": flow.zeros((*batch, m, n), dtype=flow.float64), "a": flow.tensor(a), "b": flow.tensor(b),
             "transpose_a": ta, "transpose_b": tb, "a_shape": a.shape, "b_shape": b.shape}
    for name, v in (("da", a), ("db", b)):
        got = tuple(yours[name](**{p: given[p] for p in parameters(yours[name])}).shape)
        if got[-2:] != v.shape[-2:]:
            return [_case(case), f"  yours           {name} has the shape {got}, {name[1]} has {v.shape}",
                    "  in letters      mk,kn->mn: dy is mn; which letters have da and db?"]
    return None


def _matmul_judged(case, yours):
    import flowedu as flow
    wrong = _misshapen(case, yours)
    if wrong:
        return wrong
    a, b, f = _product(case)
    x, y = (flow.tensor(v, dtype=flow.float64, requires_grad=True) for v in (a, b))
    got = [g.numpy() for g in flow.autograd.grad(f(x, y), (x, y))]
    for name, v, g, i in (("da", a, got[0], 0), ("db", b, got[1], 1)):
        right = np.zeros_like(v)
        for at in np.ndindex(*v.shape):
            step = np.zeros_like(v)
            step[at] = EPS
            ends = [f(*(flow.tensor(u + s * step if j == i else u) for j, u in enumerate((a, b)))).item() for s in (1, -1)]
            right[at] = (ends[0] - ends[1]) / (2 * EPS)
        if not np.allclose(g, right, rtol=1e-4, atol=1e-5):
            at = tuple(int(k) for k in np.argwhere(~np.isclose(g, right, rtol=1e-4, atol=1e-5))[0])
            return [_case(case), f"  {name}{list(at)}          yours {g[at]:.4f}, by differences {right[at]:.4f}"]
    return None


def _matmul_again(case, yours):
    import flowedu as flow
    a, b, f = _product(case)
    x, y = (flow.tensor(v, dtype=flow.float64, requires_grad=True) for v in (a, b))
    da, db = flow.autograd.grad(f(x, y), (x, y), create_graph=True)
    if not (da.requires_grad and db.requires_grad):
        return [_case(case), "  yours           has no history: what went through numpy() or detach() is a constant"]
    mixed = flow.autograd.grad((da * da).sum(), y)[0].numpy()
    step = np.ones_like(b) * EPS

    def energy(v):
        u, w = flow.tensor(a, dtype=flow.float64, requires_grad=True), flow.tensor(v, dtype=flow.float64)
        return float((flow.autograd.grad(f(u, w), u)[0].numpy() ** 2).sum())

    right = (energy(b + step) - energy(b - step)) / (2 * EPS)
    if np.isclose(mixed.sum(), right, rtol=1e-3, atol=1e-4):
        return None
    return [_case(case), f"  d(|da|^2)/db    yours {mixed.sum():.4f}, by differences {right:.4f}"]


matmul = Law("as by differences", _products, _matmul_judged, _smaller_products, cases=40, told=_named)
matmul_again = Law("its own gradient is right, too", _products, _matmul_again, _smaller_products, cases=30, told=_named)


# ---- un-broadcasting
def _stretched(rng, size):
    s = shape(rng, size, zero=False)
    front = tuple(rng.randint(1, 3) for _ in range(rng.randint(0, 2)))
    return s, (*front, *(rng.randint(1, 3) if n == 1 else n for n in s))


def _smaller_stretched(case):
    s, big = case
    extra = len(big) - len(s)
    if extra:
        yield s, big[1:]
    for i in range(len(s)):
        yield s[:i] + s[i + 1:], big[:extra + i] + big[extra + i + 1:]


def _stretched_words(case):
    return f"grad {case[1]} of a value of shape {case[0]}"


def _unbroadcast_judged(case, yours):
    import flowedu as flow
    s, big = case
    grad = np.random.default_rng(2).integers(-3, 4, big).astype(np.float32)
    want = grad.sum(tuple(range(len(big) - len(s))))
    want = want.sum(tuple(i for i, n in enumerate(s) if n == 1), keepdims=True) if 1 in s else want
    want = want.reshape(s)
    got = yours(flow.tensor(grad), s).numpy()
    said = f"  smallest case   {_stretched_words(case)}"
    if got.shape != s:
        return [said, *pair("should be", got.shape, s)]
    return None if np.array_equal(got, want) else [said, *pair("should be", got.tolist(), want.tolist())]


unbroadcast = Law("the sum over all copies, in the value's shape", _stretched, _unbroadcast_judged, _smaller_stretched,
                  told=_stretched_words)


def _unbroadcast_again(case, yours):
    import flowedu as flow
    s, big = case
    grad = flow.tensor(np.ones(big, np.float32), requires_grad=True)
    if yours(grad, s).requires_grad:
        return None
    return [f"  smallest case   {_stretched_words(case)}",
            "  yours           has no history: what went through numpy() or detach() is a constant"]


unbroadcast_again = Law("it can be differentiated again", _stretched, _unbroadcast_again, _smaller_stretched, cases=20,
                        told=_stretched_words)


# ---- the walk back
class _Op:
    """A made-up op y = sum of weights * inputs, so that its gradients are the weights. A weight of 1 hands on the very
    gradient that came, as add does."""

    variadic, outputs, saved = False, ("y",), ()

    def __init__(self, weights):
        self.inputs = tuple(f"x{i}" for i in range(len(weights)))
        self.weights = weights
        from flowedu.core.ops.call import Rule

        self.rules = {n: Rule((lambda dy, w=w: dy if w == 1 else dy * w), [("grad", 0)])
                      for n, w in zip(self.inputs, weights)}


def _graphs(rng: random.Random, size):
    """(number of leaves, [(indices of inputs, weights)], seeds [(value, gradient)], targets)"""
    leaves = rng.randint(1, 2)
    calls, n = [], leaves
    for _ in range(rng.randint(1, 2 * size)):
        k = rng.randint(1, min(2, n))
        calls.append((tuple(rng.randrange(n) for _ in range(k)), tuple(rng.randint(-2, 3) for _ in range(k))))
        n += 1
    seeds = ((n - 1, 1),) if rng.random() < 0.6 else ((rng.randrange(leaves, n), 1), (n - 1, 2))
    between = [rng.randrange(n)] if rng.random() < 0.3 else []                # a gradient of a value on the way
    targets = {*rng.sample(range(leaves), rng.randint(1, leaves)), *between}
    return leaves, tuple(calls), seeds, tuple(sorted(targets))


def _smaller_graphs(case):
    leaves, calls, seeds, targets = case
    n = leaves + len(calls)
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


def _text(leaves, calls):
    """(names of the values, the program)"""
    names = [f"x{i}" for i in range(leaves)] + [f"v{i}" for i in range(len(calls))]
    sums = [" + ".join(f"{w}*{names[j]}" for j, w in zip(*c)) for c in calls]
    return names, "; ".join(f"{names[leaves + i]} = {s}" for i, s in enumerate(sums))


def _walked(case, yours, times=1):
    """(what yours gives, the numbers of the calls it visits). times: visit gives records with so many times the weights"""
    import flowedu as flow
    from flowedu.core.ops.reverse import Call
    leaves, calls, seeds, targets = case
    values = [flow.tensor(1.0) for _ in range(leaves + len(calls))]
    more = [(flow.tensor(1.0),) * (i % 3 == 1) for i in range(len(calls))]     # a second result, which nobody reads
    records, others = ([Call(_Op([k * w for w in ws]), tuple(values[j] for j in ins), (), (values[leaves + i], *more[i]))
                        for i, (ins, ws) in enumerate(calls)] for k in (1, times))
    begin = [(values[v], flow.tensor(float(g))) for v, g in seeds]
    visited: list = []

    def visit(call):
        visited.append(next(i for i, r in enumerate(records) if r is call))
        return None if times == 1 else others[visited[-1]]

    got = yours(records, begin, [values[t] for t in targets], visit)
    changed = [(v, g, float(s.item())) for (v, g), (_, s) in zip(seeds, begin) if s.item() != g]
    return got, visited, changed


def _walk_judged(case, yours, times=1):
    leaves, calls, seeds, targets = case
    right = [0.0] * (leaves + len(calls))
    touched = [False] * len(right)
    for v, g in seeds:
        right[v] += g
        touched[v] = True
    for i in range(len(calls) - 1, -1, -1):
        y = leaves + i
        if touched[y]:
            for j, w in zip(*calls[i]):
                right[j] += right[y] * w * times
                touched[j] = True
    got, visited, changed = _walked(case, yours, times)
    names, text = _text(leaves, calls)
    said = [f"  smallest case   {text}", f"  seeds           {', '.join(f'd{names[v]} = {g}' for v, g in seeds)}"]
    if times != 1:
        said.append(f"  visit gives     a record whose weights are {times} times as large: its gradients count")
    for v, g, now in changed:
        return [*said, f"  the seed d{names[v]} is {now:g} afterwards: it is somebody else's, and so is what a rule gives",
                f"  add them up in a new value, not in place; it was {g}"]
    if lines := counted(got, [f"d{names[t]}" for t in targets]):
        return [*said, *lines]
    for t, g in zip(targets, got):
        mine = None if g is None else float(g.item())
        want = right[t] if touched[t] else None
        if mine != want:
            return [*said, f"  d{names[t]:14s} yours {mine}, should be {want}"]
    if len(visited) != len(set(visited)):
        return [*said, "  yours           visits a call more than once: with n diamonds that is 2^n visits"]
    return None


def _unwanted_judged(case, yours):
    leaves, calls, _, targets = case
    visited = _walked(case, yours)[1]
    reached = set(targets)
    for i, (ins, _) in enumerate(calls):
        if reached & set(ins):
            reached.add(leaves + i)
    names, text = _text(leaves, calls)
    for i in visited:
        if leaves + i not in reached:
            return [f"  smallest case   {text}", f"  targets         {', '.join(names[t] for t in targets)}",
                    f"  yours           visits {names[leaves + i]}, which no target leads to"]
    return None


_words = lambda case: _text(*case[:2])[1]
walk = Law("every gradient is the sum over all paths", _graphs, _walk_judged, _smaller_graphs, cases=150, told=_words)
wanted = Law("only what is wanted is computed", _graphs, _unwanted_judged, _smaller_graphs, cases=100, told=_words)
visited = Law("what visit gives is used instead", _graphs, lambda case, yours: _walk_judged(case, yours, times=3),
              _smaller_graphs, told=_words)
