"""Laws of chapter 6: the SBP signatures of a call and the choice of one, tested with values on two devices."""
from __future__ import annotations

import itertools
import random

import numpy as np

from flowedu.learn.laws import Law, case_of
from flowedu.learn.laws.plans import _own as own

# op, shapes, attributes; an even number along every axis, so that each may be cut
CALLS = (
    ("neg", ((2, 4),), {}), ("relu", ((4,),), {}), ("add", ((2, 4), (2, 4)), {}), ("sub", ((4,), (4,)), {}),
    ("mul", ((2, 4), (2, 4)), {}), ("div", ((4,), (4,)), {}), ("transpose", ((2, 4),), {"perm": (1, 0)}),
    ("sum", ((2, 4),), {"axis": (0,)}), ("sum", ((2, 4),), {"axis": (0, 1)}), ("max", ((2, 4),), {"axis": (1,)}),
    ("min", ((4, 2),), {"axis": (0,)}), ("matmul", ((2, 4), (4, 6)), {}),
    ("matmul", ((4, 2), (4, 6)), {"transpose_a": True}), ("matmul", ((2, 2, 4), (2, 4, 2)), {}),
    ("softmax", ((2, 4),), {"axis": 1}), ("bias_add", ((2, 4), (4,)), {"axis": 1}), ("maximum", ((2, 4), (2, 4)), {}),
    ("gather", ((4, 2), (2,)), {"axis": 0}), ("concat", ((2, 4), (2, 4)), {"axis": 0}),
    ("cast", ((2, 4),), {"dtype": "int64"}), ("softmax_cross_entropy", ((2, 4), (2, 4)), {}))
_TURN = itertools.cycle(CALLS)


def _calls(rng, size):
    """Each of them in turn: none is left out."""
    return next(_TURN)


def _asked(case):
    """(op, logical Specs, attributes, arrays)"""
    from flowedu.core.ops.define import REGISTRY
    from flowedu.core.values.dtype import float64, int64
    from flowedu.core.values.spec import Spec
    name, shapes, attrs = case
    attrs = {k: int64 if v == "int64" else v for k, v in attrs.items()}
    op, rng = REGISTRY[name], np.random.default_rng(4)
    arrays = [rng.standard_normal(s) for s in shapes]
    if name == "gather":
        arrays[1] = np.array([3, 1])
    specs = tuple(Spec(a.shape, float64 if a.dtype.kind == "f" else int64) for a in arrays)
    return op, specs, op.complete(attrs), arrays


def scattered(a, sbp, rng):
    """What two devices have of an array."""
    if sbp == "B":
        return [a, a]
    if sbp == "P":
        part = 4 * rng.standard_normal(a.shape)
        return [part, a - part]
    if sbp[0] == "P":                                                  # one has it, the other is on the far side
        owner, sign = rng.integers(0, 2, a.shape), -1 if sbp == "Pmax" else 1
        return [np.where(owner == i, a, a + sign * rng.random(a.shape)) for i in range(2)]
    return np.split(a, 2, int(sbp[1:]))


def _gathered(parts, sbp):
    if sbp == "B":
        return parts[0] if parts[0].shape == parts[1].shape and np.allclose(*parts) else None
    if sbp[0] == "P":
        join = {"P": np.add, "Pmax": np.maximum, "Pmin": np.minimum}[sbp]
        return join(*parts) if parts[0].shape == parts[1].shape else None
    try:
        return np.concatenate(parts, int(sbp[1:]))
    except ValueError:
        return None


def _call(op, arrays, attrs):
    """A list of its outputs."""
    names = {op.inputs[0]: tuple(arrays)} if op.variadic else dict(zip(op.inputs, arrays))
    out = op.ask(op.ref, {**names, **dict(zip(op.attrs, attrs))})
    return list(map(np.asarray, out if len(op.outputs) > 1 else [out]))


def _holds(op, arrays, attrs, signature, want):
    """Whether two devices that work on parts laid so have parts of the result, laid so."""
    rng = np.random.default_rng(9)
    try:
        inputs = [scattered(a, s, rng) for a, s in zip(arrays, signature)]
        parts = [_call(op, [p[d] for p in inputs], attrs) for d in range(2)]
    except (ValueError, IndexError, TypeError):
        return False
    for mine, sbp, y in zip(zip(*parts), signature[len(arrays):], want):
        got = _gathered(mine, sbp)
        if got is None or got.shape != y.shape or not np.allclose(got, y):
            return False
    return True


def _named(case, op, specs, attrs):
    given = " and ".join(map(str, case[1]))
    return f"  smallest case   {op.name} {op.equation(specs, attrs)} of {given}"


def _ways(arrays, want):
    """Every way to lay inputs and outputs on a row, but for indices, which have no addends."""
    of = [["B", *(["P"] if a.dtype.kind == "f" else []), *(f"S{i}" for i in range(a.ndim))] for a in arrays]
    return itertools.product(*of, *(["B", "P", *(f"S{i}" for i in range(y.ndim))] for y in want))


def _sound_judged(case, yours):
    from flowedu.core.sbp.signature import extra, text
    op, specs, attrs, arrays = _asked(case)
    want, spread = _call(op, arrays, attrs), extra(op, specs, attrs)
    made = list(yours(op, specs, attrs))
    for s in made:
        if len(s) != len(arrays) + len(want):
            return [_named(case, op, specs, attrs), f"  yours           {s!r}: one for each input, then for each output"]
        if s not in spread and not _holds(op, arrays, attrs, s, want):
            return [_named(case, op, specs, attrs), f"  yours           {text(op, s)}",
                    "  with numbers on two devices it is not so"]
    if not made or set(made[-1]) != {"B"} or len(set(made)) < len(made):
        return [_named(case, op, specs, attrs), f"  yours           {text(op, made[-1]) if made else 'nothing'} comes last",
                "  all B comes last, and none comes twice: among equals the first is taken"]
    return None


def _complete_judged(case, yours):
    from flowedu.core.sbp.signature import extra, text
    op, specs, attrs, arrays = _asked(case)
    want, got = _call(op, arrays, attrs), set(yours(op, specs, attrs))
    fold = [("Pmax",) * (len(arrays) + 1)] if op.fold == "max" or any(op.rising) else []
    for s in (*_ways(arrays, want), *extra(op, specs, attrs), *fold):
        if s not in got and (s in extra(op, specs, attrs) or _holds(op, arrays, attrs, s, want)):
            return [_named(case, op, specs, attrs), f"  yours           lacks {text(op, s)}",
                    "  with numbers on two devices it is right"]
    return None


_call_words = case_of(lambda case: _named(case, *_asked(case)[:3]))
sound = Law("what it says is so with numbers", _calls, _sound_judged, cases=2 * len(CALLS), told=_call_words)
complete = Law("what is so with numbers, it says", _calls, _complete_judged, cases=2 * len(CALLS), told=_call_words)


# ---- which way wins
ROW = (0, 1, 2, 3)
PROGRAM_OPS = {"matmul": 2, "add": 2, "mul": 2, "relu": 1, "sum": 1}


def _programs(rng, size):
    """(layouts of three (8, 8) values, [(op, inputs)]); values are numbered, results behind them."""
    given = tuple(rng.choice(("B", "S0", "S1", "P")) for _ in range(3))
    calls = [(name, tuple(rng.randrange(3 + i) for _ in range(PROGRAM_OPS[name])))
             for i in range(rng.randint(1, 2 * size)) for name in [rng.choice(("matmul", "matmul", "add", "mul", "relu"))]]
    return given, tuple(calls)


def _smaller_programs(case):
    given, calls = case
    if len(calls) > 1:
        yield given, calls[:-1]
        yield given, tuple((n, tuple(max(0, i - 1) if i > 2 else i for i in ins)) for n, ins in calls[1:])
    for i, s in enumerate(given):
        if s != "B":
            yield (*given[:i], "B", *given[i + 1:]), calls


def _choices(case):
    """The choice of each call, and the bytes of the last result brought to S(0)."""
    from flowedu.core.ops.define import REGISTRY
    from flowedu.core.sbp import choose
    from flowedu.core.sbp.boxing.primitives import route
    from flowedu.core.sbp.sbp import Layout, layout
    from flowedu.core.values.dtype import float32
    from flowedu.core.values.spec import Spec
    choose._find_choice.cache_clear()
    spec = Spec((8, 8), float32)
    global_layouts = [layout(s, ROW) for s in case[0]]
    made = []
    for name, ins in case[1]:
        op = REGISTRY[name]
        same = {i: (global_layouts[i],) for i in ins}
        made.append(choose.choose(op, [spec] * len(ins), op.complete({}), [same[i] for i in ins], ROW))
        global_layouts.append(made[-1].layouts[-1])
    choose._find_choice.cache_clear()
    return made, route(global_layouts[-1], Layout(("S0",), ROW, (4,)), spec).bytes


def _program_said(case):
    given, calls = case
    names = [*"abc", *(f"v{i}" for i in range(len(calls)))]
    laid = ", ".join(f"{n} {s}" for n, s in zip(names, given))
    run = "; ".join(f"{names[3 + i]} = {op}({', '.join(names[j] for j in ins)})" for i, (op, ins) in enumerate(calls))
    return f"  smallest case   {laid}: {run}"


def _again_judged(case, yours):
    first, second = _choices(case)[0], _choices(case)[0]
    for a, b in zip(first, second):
        if a.signature != b.signature:
            return [_program_said(case), f"  {a.op.name:15s} runs in one way now and in another the next time",
                    "  every rank has to come to the same answer"]
    return None


def _whole_judged(case, yours):
    from flowedu.core.sbp.signature import text
    for c in _choices(case)[0]:
        whole = next((k for k in c.candidates if not k.fault and all(s == ("B",) for s in k.signature)), None)
        if whole is not None and c.bytes > whole.bytes:
            return [_program_said(case),
                    f"  yours           {text(c.op, c.signature)}: {c.bytes:,} bytes to bring its inputs there",
                    f"  with all of it B it would be {int(whole.bytes):,}"]
    return None


again = Law("the same way every time", _programs, _again_judged, _smaller_programs, cases=40,
            told=case_of(_program_said))
not_dearer = Law("never dearer than everything to B", _programs, _whole_judged, _smaller_programs, cases=60,
                 told=case_of(_program_said))


_KEY = own("_fewest_bytes", "flowedu.core.sbp.rules")


def fewest_bytes_stars(yours, seed=0):
    """Bytes of 60 programs, each result brought to S(0) in the end."""
    from flowedu.core.sbp.rules import _fewest_bytes
    from flowedu.learn.swap import swapped
    rng = random.Random(seed + 5)
    programs = [_programs(rng, 4) for _ in range(60)]

    def bill():
        return sum(sum(c.bytes for c in choices) + last for choices, last in map(_choices, programs))

    mine = bill()
    with swapped(_fewest_bytes, _KEY):
        return {"bytes": mine, "library": bill()}
