"""Checks of the exercises of chapter 6."""
import contextlib
import itertools

import numpy as np

import flowedu as flow
from flowedu.core.sbp.sbp import pretty
from flowedu.core.sbp.signature import signatures
from flowedu.core.values.spec import Spec
from flowedu_course.exercises import Wrong, expect


def said(signature):
    return ", ".join(map(pretty, signature[:-1])) + " -> " + pretty(signature[-1])


# ---- legal
def scatter(a, sbp):
    if sbp == "B":
        return [a, a]
    if sbp == "P":
        part = 4 * np.random.default_rng(3).standard_normal(a.shape)
        return [part, a - part]
    return np.split(a, 2, int(sbp[1:]))


def gather(parts, sbp):
    if sbp == "B":
        return parts[0] if parts[0].shape == parts[1].shape and np.allclose(*parts) else None
    with contextlib.suppress(ValueError):
        return parts[0] + parts[1] if sbp == "P" else np.concatenate(parts, int(sbp[1:]))


def soft(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


FUNCTIONS = {"matmul": (np.matmul, ((4, 6), (6, 8)), {}), "add": (np.add, ((4, 6), (4, 6)), {}),
             "mul": (np.multiply, ((4, 6), (4, 6)), {}), "softmax": (soft, ((4, 6),), {"axis": 1}),
             "sum": (lambda x: x.sum(0), ((4, 6),), {"axis": (0,)})}


def check_legal(f):
    rng = np.random.default_rng(0)
    for name, (function, shapes, attrs) in FUNCTIONS.items():
        op = flow.ops.REGISTRY[name]
        want = set(signatures(op, [Spec(s, flow.float32) for s in shapes], op.complete(attrs)))
        got = f(function, [rng.standard_normal(s) for s in shapes], scatter, gather)
        if not isinstance(got, (set, frozenset)):
            raise Wrong(f"legal gives {got!r} for {name}", "a set of tuples such as ('S0', 'B', 'S0')")
        if want - got:
            raise Wrong(f"{name}: {said(min(want - got))} is legal, and not in the set",
                        "try every sbp of every input, and compare what comes out with each sbp of the "
                        "output")
        if got - want:
            raise Wrong(f"{name}: {min(got - want)} is not legal",
                        "gather the parts, and compare with f of the whole inputs")


# ---- softmax
def check_softmax(f):
    small = np.random.default_rng(0).standard_normal((4, 9)) * 3
    for x, cuts in ((small, (5,)), (small, (2, 6)), (small + 1000, (5,))):
        asked = []

        def all_reduce(arrays, op, asked=asked):
            asked.append(op)
            if any(np.shape(a) != (4, 1) for a in arrays):
                raise Wrong(f"all_reduce of {[np.shape(a) for a in arrays]}",
                            "one number for each row is enough")
            return (np.max if op == "max" else np.sum)(arrays, 0)
        got = f(np.split(x, cuts, 1), all_reduce)
        if not isinstance(got, (list, tuple)) or len(got) != len(cuts) + 1:
            raise Wrong(f"softmax gives {got!r}", f"a list of {len(cuts) + 1} arrays, one for each device")
        for d, (a, b) in enumerate(zip(got, np.split(soft(x), cuts, 1))):
            expect(f"device {d} has", a, b,
                   "exp(x - the largest of the whole row) / the sum over the whole row")
        if len(asked) > 2:
            raise Wrong(f"{len(asked)} all-reduces: {asked}", "the largest of each row, then the sum: two")


# ---- axes
def attention(q, k, v):
    scores = q @ k.swapaxes(2, 3)
    e = np.exp(scores - scores.max(3, keepdims=True))
    return e / e.sum(3, keepdims=True) @ v


OPS = {"norm": (lambda x: (x - x.mean(2, keepdims=True)) / x.std(2, keepdims=True), ((4, 4, 6),)),
       "attention": (attention, ((2, 2, 4, 6), (2, 2, 8, 6), (2, 2, 8, 10))),
       "gram": (lambda x: x.T @ x, ((6, 4),))}


def holds(f, inputs, signature):
    """Return True if a signature without partial inputs gives the correct result."""
    try:
        parts = [f(*arrays) for arrays in zip(*[scatter(a, s) for a, s in zip(inputs, signature)])]
    except ValueError:
        return False
    got, want = gather(parts, signature[-1]), f(*inputs)
    return got is not None and got.shape == want.shape and np.allclose(got, want)


def derived(equation, inputs, rank):
    """Return the signatures that follow from an equation. Raise Wrong if its form is invalid."""
    left, arrow, out = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or [len(t) for t in terms] != [a.ndim for a in inputs] or len(out) != rank:
        raise Wrong(f"{equation!r} does not fit",
                    "a letter for each axis: 'mk,kn->mn' for two matrices and their product")
    sizes = {}
    for t, a in zip(terms, inputs):
        for letter, n in zip(t, a.shape):
            if sizes.setdefault(letter, n) != n:
                raise Wrong(f"{equation!r}: axis {letter} has the sizes {sizes[letter]} and {n}",
                            "two axes, two letters")
    small = sorted({c for c in left + out if c.islower()})
    return {tuple(f"S{t.index(c)}" if c in t else "B" for t in terms) + (f"S{out.index(c)}" if c in out
                                                                         else "P",)
            for c in small}


def check_axes(f):
    given = f()
    if (not isinstance(given, dict) or set(given) != set(OPS) or not all(isinstance(e, str)
                                                                         for e in given.values())):
        raise Wrong(f"axes gives {given!r}", "{'norm': '...->...', 'attention': ..., 'gram': ...}")
    rng = np.random.default_rng(0)
    for name, (function, shapes) in OPS.items():
        inputs = [rng.standard_normal(s) for s in shapes]
        rank = function(*inputs).ndim
        said_so = derived(given[name], inputs, rank)
        for s in sorted(said_so):
            if not holds(function, inputs, s):
                raise Wrong(f"{name}: {given[name]!r} says that {said(s)}; with numbers, it is not so",
                            "an axis that must be seen as a whole gets a capital letter")
        cuts = [["B", *[f"S{i}" for i in range(a.ndim)]] for a in inputs]
        for s in itertools.product(*cuts, ["P", *[f"S{i}" for i in range(rank)]]):
            if any(c != "B" for c in s[:-1]) and s not in said_so and holds(function, inputs, s):
                raise Wrong(f"{name}: {said(s)} would be right, too, and {given[name]!r} does not say so",
                            "which capital letter could be small?")
