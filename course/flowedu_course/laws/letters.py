"""Laws of chapter 2: axes that may be split and inputs in which an op is linear, tested on parts."""
from __future__ import annotations

import itertools
import string

import numpy as np

from flowedu.core.ops.axes import parse
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import float32, int64
from flowedu.core.values.spec import Spec
from flowedu_course.laws import holds, simpler
from flowedu_course.laws.programs import evaluate


# ---- lowercase and capital letters
def _calls(rng, size):
    """Draw (op, shapes, attributes)."""
    shape = tuple(rng.choice((4, 6)) for _ in range(rng.randint(1, min(3, 1 + size))))
    if rng.random() < 0.5:
        return "softmax", (shape,), (("axis", rng.randint(-len(shape), len(shape) - 1)),)
    return "sparse_softmax_cross_entropy", (shape[:-1], shape), ()


def _smaller_calls(case):
    name, shapes, attrs = case
    if name != "softmax" and len(shapes[1]) > 1:
        yield name, (shapes[0][1:], shapes[1][1:]), attrs
    if name == "softmax" and len(shapes[0]) > 1:
        yield from ((name, ((4,) * (len(shapes[0]) - 1),), (("axis", a),)) for a in (0, -1))


def _specs(case):
    name, shapes, attrs = case
    op = REGISTRY[name]
    kinds = (float32,) if name == "softmax" else (int64, float32)
    return op, [Spec(s, k) for s, k in zip(shapes, kinds)], op.complete(dict(attrs))


def _arrays(case):
    rng = np.random.default_rng(4)
    name, shapes, _ = case
    x = rng.standard_normal(shapes[-1])
    return (x,) if name == "softmax" else (rng.integers(0, shapes[-1][-1], shapes[0]), x)


def _on_parts(op, arrays, attrs, terms, outs, letter, k):
    """Compute with all axes named `letter` split into k parts; join the outputs, or sum those without it."""
    parts = []
    for i in range(k):
        mine = [np.array_split(a, k, t.index(letter))[i] if letter in t else a for a, t in zip(arrays, terms)]
        parts.append(evaluate(op, mine, attrs))
    return [np.concatenate(p, t.index(letter)) if letter in t else np.sum(p, 0) for p, t in zip(zip(*parts),
                                                                                                outs)]


def _describe_call(case):
    op, specs, _ = _specs(case)
    short = "softmax" if case[0] == "softmax" else "cross_entropy"
    return (f"{short} of {' and '.join(f'{n} {s.shape}' for n, s in zip(op.inputs, specs))}"
            + "".join(f", {k}={v}" for k, v in case[2]))


# An answer that counts letters down from "i" has no tenth letter.
_MANY_AXES = [("softmax", ((2,) * 10,), (("axis", -1),)),
              ("sparse_softmax_cross_entropy", ((2,) * 10, (2,) * 11), ())]


@holds("only axes with lowercase letters are split", _calls, _smaller_calls, cases=60, told=_describe_call,
       edges=_MANY_AXES)
def letters(case, yours):
    op, specs, attrs = _specs(case)
    arrays = _arrays(case)
    equation = op.equation(specs, attrs)
    said = f"  yours           {equation}"
    if not isinstance(equation, str) or equation.count("->") != 1:
        return [said, '  an equation is a text such as "ab->ab"']
    if others := set(equation) - {*string.ascii_letters, *",->"}:
        return [said, f"  {min(others)!r} is not a letter"]
    whole = evaluate(op, arrays, attrs)
    terms, outs = parse(equation, len(specs))
    for what, found, arrays_of in (("inputs", terms, arrays), ("outputs", outs, whole)):
        if [len(t) for t in found] != [a.ndim for a in arrays_of]:
            return [said, f"  {what} have {', '.join(str(a.ndim) for a in arrays_of)} axes: one letter "
                    f"for each"]
    sizes = {}
    for term, a in zip((*terms, *outs), (*arrays, *whole)):
        for letter, n in zip(term, a.shape):
            if sizes.setdefault(letter, n) != n:
                return [said, f"  {letter} has the sizes {sizes[letter]} and {n}: equal letters need "
                        f"equal sizes"]
    for letter, k in itertools.product(sizes, (2, 3)):
        try:
            cut = _on_parts(op, arrays, attrs, terms, outs, letter, k)
            works = all(c.shape == w.shape and np.allclose(c, w) for c, w in zip(cut, whole))
        except (IndexError, ValueError):
            works = False
        if works and letter.isupper():
            return [said, f"  {letter} is uppercase, but the op is also right with that axis split on {k} "
                    f"devices"]
        if not works and not letter.isupper():
            return ([said, f"  {letter} is lowercase, but with that axis split on {k} devices the results "
                     f"differ"])
    return None


# ---- inputs in which an op is linear
OPS = {"add": "x + y", "mul": "x * y", "div": "x / y", "where": "x where cond, else y", "relu": "relu(x)"}


def _groups(rng, size):
    """Draw (op, a group of its inputs)."""
    name = rng.choice(list(OPS))
    inputs = REGISTRY[name].inputs
    some = rng.sample(inputs, rng.randint(1, min(size, len(inputs))))
    return name, tuple(n for n in inputs if n in some)


_smaller_groups = simpler((1, lambda group: ((n,) for n in group if len(group) > 1)))


def _adds_up(op, group, seed=0):
    """Return True if op(sum of parts) equals the sum of op(part), with only the inputs in `group` split."""
    rng = np.random.default_rng(seed)
    draw = lambda n: rng.integers(0, 2, 8).astype(np.int8) if n == "cond" else rng.standard_normal(8)
    given = {n: draw(n) for n in op.inputs}
    parts = [{**given, **{n: draw(n) for n in group}} for _ in range(2)]
    whole = {**given, **{n: parts[0][n] + parts[1][n] for n in group}}
    return np.allclose(op.ask(op.ref, whole), sum(op.ask(op.ref, p) for p in parts))


@holds("linear exactly if partial results add up", _groups, _smaller_groups, cases=120,
       told=lambda case: f"{case[0]}: {OPS[case[0]]}")
def linear(case, yours):
    name, group = case
    op = REGISTRY[name]
    mine = yours[name]()
    said = f"  yours           {mine!r}"
    if not isinstance(mine, (list, tuple)):
        return [said, "  a list of groups, which may be empty"]
    listed = {frozenset((g,) if isinstance(g, str) else g) for g in mine}
    for n in sorted(set().union(*listed) - set(op.inputs)):
        return [said, f"  {name} has no input {n!r}: its inputs are {', '.join(op.inputs)}"]
    adds = _adds_up(op, group)
    if adds == (frozenset(group) in listed):
        return None
    rest = [n for n in op.inputs if n not in group]
    parts = " and ".join(f"{n} = {n}1 + {n}2" for n in group) + (f" ({', '.join(rest)} whole)" if rest
                                                                 else "")
    if adds:
        return [said, f"  with {parts} the two results do add up: list the group"]
    return [said, f"  with {parts} the two results do not add up"]
