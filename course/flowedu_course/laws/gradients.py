"""Laws of chapter 2: shapes from axis equations, gradients, and the backward pass."""
from __future__ import annotations

import numpy as np

import flowedu as flow
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.record import parameters
from flowedu.core.values.dtype import float32
from flowedu.core.values.spec import Spec
from flowedu.errors import ShapeError
from flowedu_course.laws import SMALLEST, Law, Words, chapter2, counted, holds, pair, same

EPS = 1e-5


# ---- shapes from letters
def _equations(rng, size):
    letters = "abcdk"[:1 + min(size, 4)]
    sizes = {c: rng.randint(1, 2 + size) for c in letters}
    terms = ["".join(rng.sample(letters, rng.randint(1, len(letters)))) for _ in range(rng.randint(1, 2))]
    seen = sorted(set("".join(terms)))
    outs = ["".join(rng.sample(seen, rng.randint(0, len(seen)))) for _ in range(rng.choice((1, 1, 2)))]
    return ",".join(terms) + "->" + ",".join(outs), tuple(tuple(sizes[c] for c in t) for t in terms)


def _equation(case):
    return f"{case[0]} of {' and '.join(map(str, case[1]))}"


@holds("the shape has the sizes of its letters", _equations, told=_equation,
       edges=[("a->", ((3,),)), ("ab->ba", ((0, 1),)), ("a,b->ab", ((1,), (0,))), ("a,a->a,a", ((1,), (1,)))])
def letters(case, yours):
    equation, shapes = case
    table = {c: n for t, s in zip(equation.partition("->")[0].split(","), shapes) for c, n in zip(t, s)}
    want = [tuple(table[c] for c in term) for term in equation.partition("->")[2].split(",")]
    op = type("op", (), {"name": "yours", "inputs": ("x", "y")[:len(shapes)], "variadic": False,
                         "outputs": "zv"[:len(want)]})()
    got = yours(op, equation, [Spec(s, float32) for s in shapes])
    if len(got) != len(want) or not all(map(same, got, want)):
        return pair("should be", got, want)
    return _two_sizes(op, equation, shapes, yours)


def _two_sizes(op, equation, shapes, yours):
    """Check that a letter with two sizes raises a ShapeError."""
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
    return [f"{SMALLEST}{equation} of {' and '.join(map(str, bad))}: {both[0]} has two sizes",
            *pair("should be", got, Words("a ShapeError, which `sizes` raises"))]


# ---- gradients of elementwise ops
def _points(rng, size):
    return [round(rng.uniform(-1, 1) * size, 2) for _ in range(rng.randint(1, size))]


def _smaller_points(case):
    if len(case) > 1:
        yield from ([x] for x in case)
    plain = [[0.5], [1.0], [-0.5]]
    yield from plain[:plain.index(case)] if case in plain else plain


def _slope(name, x, order):
    """Return the first or second derivative of sum(op), by autograd and by finite differences."""
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
                lines = [f"{SMALLEST}{name.partition('_')[0]} at x = {case[i]}, dy = 1.0"]
                what = "the gradient" if order == 1 else "second"
                if order == 2:
                    a, b = _slope(name, [case[i]], 1)
                    lines.append(f"  first gradient  yours {a[0]:.4f}, by differences {b[0]:.4f}   ok")
                lines.append(f"  {what:15s} yours {own[i]:.4f}, by differences {right[i]:.4f}")
                if order == 2:
                    lines.append("  a factor has no history: values that went through numpy() or "
                                 "detach() are constants")
                return lines
        return None
    return judge


_at = lambda case: f"x = {', '.join(map(str, case))}, dy = 1.0"
slope = Law("the gradient equals finite differences", _points, _slopes(1), _smaller_points, told=_at,
            edges=[[0.0], [-0.0]])
curve = Law("the gradient has a correct gradient", _points, _slopes(2), _smaller_points, told=_at)
far = Law("the gradient is correct far from 0", lambda rng,
          size: [rng.choice((-1.0, 1.0)) * 10 ** rng.randint(1, 4)],
          _slopes(1), lambda case: [[x / 10] for x in case if abs(x) > 10], told=_at,
          edges=[[1e4], [-1e4]])


@holds("one value is kept for backward, not two", lambda rng, size: None, cases=1)
def kept(case, yours):
    for name in yours:
        op = REGISTRY[name.partition("_")[0]]
        saved = [op.inputs[i] if i >= 0 else op.outputs[~i] for i in op.saved]
        if len(saved) > 1:
            return [f"  {name} names {' and '.join(sorted(saved, reverse=True))}: both are kept until "
                    f"backward", "  one is enough; the memory of the other is then freed early"]
    return None


# ---- the gradient of a matrix product


def _misshapen(case, yours):
    """Return the failure lines if a gradient has a wrong matrix shape; the library sums leading batch axes."""
    m, _, n, batch, ta, tb, _ = case
    a, b, _ = chapter2.make_product(case)
    given = {"dy": flow.zeros((*batch, m, n), dtype=flow.float64), "a": flow.tensor(a), "b": flow.tensor(b),
             "transpose_a": ta, "transpose_b": tb, "a_shape": a.shape, "b_shape": b.shape}
    for name, v in (("da", a), ("db", b)):
        got = tuple(yours[name](**{p: given[p] for p in parameters(yours[name])}).shape)
        if got[-2:] != v.shape[-2:]:
            return [f"  yours           {name} has the shape {got}, {name[1]} has {v.shape}",
                    "  in letters      mk,kn->mn: dy is mn; which letters have da and db?"]
    return None


@holds("the gradient equals finite differences", chapter2.draw_product, chapter2.smaller_products, cases=40,
       told=chapter2.describe_product)
def matmul(case, yours):
    wrong = _misshapen(case, yours)
    if wrong:
        return wrong
    a, b, f = chapter2.make_product(case)
    x, y = (flow.tensor(v, dtype=flow.float64, requires_grad=True) for v in (a, b))
    got = [g.numpy() for g in flow.autograd.grad(f(x, y), (x, y))]
    for name, v, g, i in (("da", a, got[0], 0), ("db", b, got[1], 1)):
        right = np.zeros_like(v)
        for at in np.ndindex(*v.shape):
            step = np.zeros_like(v)
            step[at] = EPS
            ends = [f(*(flow.tensor(u + s * step if j == i else u) for j, u in enumerate((a, b)))).item()
                    for s in (1, -1)]
            right[at] = (ends[0] - ends[1]) / (2 * EPS)
        if not np.allclose(g, right, rtol=1e-4, atol=1e-5):
            at = tuple(int(k) for k in np.argwhere(~np.isclose(g, right, rtol=1e-4, atol=1e-5))[0])
            return [f"  {name}{list(at)}          yours {g[at]:.4f}, by differences {right[at]:.4f}"]
    return None


@holds("the gradient has a correct gradient", chapter2.draw_product, chapter2.smaller_products, cases=30,
       told=chapter2.describe_product)
def matmul_again(case, yours):
    a, b, f = chapter2.make_product(case)
    x, y = (flow.tensor(v, dtype=flow.float64, requires_grad=True) for v in (a, b))
    da, db = flow.autograd.grad(f(x, y), (x, y), create_graph=True)
    if not (da.requires_grad and db.requires_grad):
        return ["  yours           has no history: values from numpy() or detach() are constants"]
    mixed = flow.autograd.grad((da * da).sum(), y)[0].numpy()
    step = np.ones_like(b) * EPS

    def energy(v):
        u, w = flow.tensor(a, dtype=flow.float64, requires_grad=True), flow.tensor(v, dtype=flow.float64)
        return float((flow.autograd.grad(f(u, w), u)[0].numpy() ** 2).sum())

    right = (energy(b + step) - energy(b - step)) / (2 * EPS)
    if np.isclose(mixed.sum(), right, rtol=1e-3, atol=1e-4):
        return None
    return [f"  d(|da|^2)/db    yours {mixed.sum():.4f}, by differences {right:.4f}"]


# ---- sums over broadcast axes


@holds("the sum over all copies, in the input shape", chapter2.draw_stretched, chapter2.smaller_stretched,
       told=chapter2.describe_stretched, edges=[((1,), (0,)), ((1, 3), (2, 0, 3))])
def unbroadcast(case, yours):
    s, big = case
    grad = np.random.default_rng(2).integers(-3, 4, big).astype(np.float32)
    want = grad.sum(tuple(range(len(big) - len(s))))
    want = want.sum(tuple(i for i, n in enumerate(s) if n == 1), keepdims=True) if 1 in s else want
    want = want.reshape(s)
    got = yours(flow.tensor(grad), s).numpy()
    if got.shape != s:
        return pair("should be", got.shape, s)
    return None if np.array_equal(got, want) else pair("should be", got.tolist(), want.tolist())


@holds("the result can be differentiated again", chapter2.draw_stretched, chapter2.smaller_stretched,
       cases=20, told=chapter2.describe_stretched)
def unbroadcast_again(case, yours):
    s, big = case
    grad = flow.tensor(np.ones(big, np.float32), requires_grad=True)
    if yours(grad, s).requires_grad:
        return None
    return ["  yours           has no history: values from numpy() or detach() are constants"]


# ---- the backward pass


_describe = lambda case: chapter2.describe_calls(*case[:2])[1]


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
    results, visited, changed = chapter2.run_walk(case, yours, times)
    names, text = chapter2.describe_calls(leaves, calls)
    said = [SMALLEST + text, f"  seeds           {', '.join(f'd{names[v]} = {g}' for v, g in seeds)}"]
    two = [names[leaves + i] for i in range(len(calls)) if chapter2.has_two_outputs(case, i)]
    if two:
        said.append(f"  two outputs     {', '.join(two)}: later calls read one or the other of two equal values")
    if times != 1:
        said.append(f"  visit returns   a call with {times} times the weights, of recomputed inputs: use its "
                    f"op, but call.inputs")
    for v, g, now in changed:
        return [*said, f"  the seed d{names[v]} was changed from {g} to {now:g}",
                "  seeds and results of rules must stay unchanged: add into a new value, not in place"]
    for got, note in zip(results, ("", "; visit is None")):
        if lines := counted(got, [f"d{names[t]}" for t in targets]):
            return [*said, *lines]
        for t, g in zip(targets, got):
            mine = None if g is None else float(g.item())
            want = right[t] if touched[t] else None
            if mine != want:
                return [*said, f"  d{names[t]:14s} yours {mine}, should be {want}{note}"]
    if len(visited) != len(set(visited)):
        return [*said, "  yours           visits a call more than once: with n diamonds that is 2^n visits"]
    return None


@holds("only requested gradients are computed", chapter2.draw_calls, chapter2.smaller_calls, cases=100,
       told=_describe)
def wanted(case, yours):
    leaves, calls, _, targets = case
    visited = chapter2.run_walk(case, yours)[1]
    reached = set(targets)
    for i, (ins, _) in enumerate(calls):
        if reached & set(ins):
            reached.add(leaves + i)
    names, text = chapter2.describe_calls(leaves, calls)
    for i in visited:
        if leaves + i not in reached:
            return [f"  targets         {', '.join(names[t] for t in targets)}",
                    f"  yours           visits {names[leaves + i]}, which does not depend on a target"]
    return None


walk = Law("each gradient is the sum over all paths", chapter2.draw_calls, _walk_judged,
           chapter2.smaller_calls, cases=150, told=_describe, edges=[chapter2.TWO_OUTPUTS], large=[chapter2.LONG_CHAIN])
visited = Law("the values that visit returns are used", chapter2.draw_calls, lambda case,
              yours: _walk_judged(case, yours, times=3),
              chapter2.smaller_calls, told=_describe, edges=[(1, (((0,), (1,)), ((1, 0), (1, 2))),
                                                              ((2, 1),), (0,))])
