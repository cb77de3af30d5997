"""Laws of chapter 6: the SBP signatures of a call and the choice of one, tested with values on two devices."""
from __future__ import annotations

import itertools
import random

import numpy as np

from flowedu.core.ops.define import REGISTRY
from flowedu.core.sbp import choose
from flowedu.core.sbp.boxing.primitives import route
from flowedu.core.sbp.rules import _fewest_bytes
from flowedu.core.sbp.sbp import Layout, layout
from flowedu.core.sbp.signature import extra, text
from flowedu.core.values.dtype import as_dtype, float32, int64
from flowedu.core.values.spec import Spec
from flowedu.swap import swapped
from flowedu_course.laws import Rejected, copy_function, holds
from flowedu_course.laws.programs import evaluate

# op, shapes, attributes; every size is even, so that each axis can be split
CALLS = (
    ("neg", ((2, 4),), {}), ("relu", ((4,),), {}), ("add", ((2, 4), (2, 4)), {}), ("sub", ((4,), (4,)), {}),
    ("mul", ((2, 4), (2, 4)), {}), ("div", ((4,), (4,)), {}), ("transpose", ((2, 4),), {"perm": (1, 0)}),
    ("sum", ((2, 4),), {"axis": (0,)}), ("sum", ((2, 4),), {"axis": (0, 1)}),
    ("max", ((2, 4),), {"axis": (1,)}), ("min", ((4, 2),), {"axis": (0,)}), ("matmul", ((2, 4), (4, 6)), {}),
    ("matmul", ((4, 2), (4, 6)), {"transpose_a": True}), ("matmul", ((2, 2, 4), (2, 4, 2)), {}),
    ("softmax", ((2, 4),), {"axis": 1}), ("bias_add", ((2, 4), (4,)), {"axis": 1}),
    ("maximum", ((2, 4), (2, 4)), {}),
    ("gather", ((4, 2), (2,)), {"axis": 0}), ("concat", ((2, 4), (2, 4)), {"axis": 0}),
    ("cast", ((2, 4),), {"dtype": "int64"}), ("softmax_cross_entropy", ((2, 4), (2, 4)), {}),
    ("where", ((4,), (4,), (4,)), {}), ("assign", ((2, 4), (2, 4)), {}))
_TURN = itertools.cycle(CALLS)


def _calls(rng, size):
    """Return the cases in turn, so that none is left out."""
    return next(_TURN)


def _read_case(case):
    """Return (op, logical Specs, attributes, arrays)."""
    name, shapes, attrs = case
    attrs = {k: int64 if v == "int64" else v for k, v in attrs.items()}
    op, rng = REGISTRY[name], np.random.default_rng(4)
    arrays = [rng.standard_normal(s) for s in shapes]
    if name == "gather":
        arrays[1] = np.array([3, 1])
    if name == "where":                            # of bool values, whose sums are not bool
        arrays = [a > 0 for a in arrays]
    specs = tuple(Spec(a.shape, as_dtype(a.dtype)) for a in arrays)
    return op, specs, op.complete(attrs), arrays


def scattered(a, sbp, rng):
    """Return the parts of an array on two devices."""
    if sbp == "B":
        return [a, a]
    if sbp == "P":
        part = (4 * rng.standard_normal(a.shape)).astype(a.dtype)
        return [part, a - part]
    # The other part is smaller (max) or larger (min).
    if sbp[0] == "P":
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
    """Run the op's NumPy reference and return the list of outputs. The result of an update is no output."""
    return list(map(np.asarray, evaluate(op, arrays, attrs)))[:len(op.outputs)]


def _holds(op, arrays, attrs, signature, want):
    """Return True if two devices with inputs laid out by `signature` compute outputs laid out by it."""
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


def _describe_call(case):
    op, specs, attrs, _ = _read_case(case)
    given = " and ".join(map(str, case[1]))
    return f"{op.name} {op.equation(specs, attrs)} of {given}"


def _ways(arrays, want):
    """Return all SBP combinations of inputs and outputs on a row of devices, except P for integer inputs."""
    of = [["B", *(["P"] if a.dtype.kind == "f" else []), *(f"S{i}" for i in range(a.ndim))] for a in arrays]
    sums = [[] if y.dtype.kind == "b" else ["P"] for y in want]
    return itertools.product(*of, *(["B", *p, *(f"S{i}" for i in range(y.ndim))] for p, y in zip(sums, want)))


@holds("each signature holds for numbers", _calls, cases=2 * len(CALLS), told=_describe_call)
def sound(case, yours):
    op, specs, attrs, arrays = _read_case(case)
    want, spread = _call(op, arrays, attrs), extra(op, specs, attrs)
    made = list(yours(op, specs, attrs))
    for s in made:
        if len(s) != len(arrays) + len(want):
            return [f"  yours           {s!r}: needs one SBP per input, then one per output"]
        if s not in spread and not _holds(op, arrays, attrs, s, want):
            return [f"  yours           {text(op, s)}",
                    "  with numbers on two devices, this signature does not hold"]
    if not made or set(made[-1]) != {"B"} or len(set(made)) < len(made):
        return [f"  yours           {text(op, made[-1]) if made else 'nothing'} comes last",
                "  all B must be last, without duplicates: of equal costs the first is chosen"]
    return None


@holds("no signature that holds is missing", _calls, cases=2 * len(CALLS), told=_describe_call)
def complete(case, yours):
    op, specs, attrs, arrays = _read_case(case)
    if not op.outputs:                             # every combination would hold
        return None
    want, got = _call(op, arrays, attrs), set(yours(op, specs, attrs))
    fold = [("Pmax",) * (len(arrays) + 1)] if op.fold == "max" or any(op.rising) else []
    for s in (*_ways(arrays, want), *extra(op, specs, attrs), *fold):
        if s not in got and (s in extra(op, specs, attrs) or _holds(op, arrays, attrs, s, want)):
            return [f"  yours           lacks {text(op, s)}",
                    "  with numbers on two devices, this signature holds"]
    return None


# ---- choice of a signature
ROW = (0, 1, 2, 3)
PROGRAM_OPS = {"matmul": 2, "add": 2, "mul": 2, "relu": 1, "sum": 1}


def _programs(rng, size):
    """Draw (layouts of three (8, 8) values, [(op, inputs)]); results are numbered after the three values."""
    given = tuple(rng.choice(("B", "S0", "S1", "P")) for _ in range(3))
    calls = [(name, tuple(rng.randrange(3 + i) for _ in range(PROGRAM_OPS[name])))
             for i in range(rng.randint(1, 2 * size))
             for name in [rng.choice(("matmul", "matmul", "add", "mul", "relu"))]]
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
    """Return the choice of each call, and the bytes it takes to bring the last result to S(0).

    Raises Rejected if the key of a candidate changes the candidate.
    """
    choose._find_choice.cache_clear()
    spec = Spec((8, 8), float32)
    global_layouts = [layout(s, ROW) for s in case[0]]
    choices = []
    for name, ins in case[1]:
        op = REGISTRY[name]
        same = {i: (global_layouts[i],) for i in ins}
        call = op, [spec] * len(ins), op.complete({}), [same[i] for i in ins], ROW
        choices.append(choose.choose(*call))
        _refuse_changes(choices[-1], call)
        global_layouts.append(choices[-1].layouts[-1])
    choose._find_choice.cache_clear()
    return choices, route(global_layouts[-1], Layout(("S0",), ROW, (4,)), spec).bytes


def _refuse_changes(choice, call):
    choose._find_choice.cache_clear()
    with swapped(_fewest_bytes, _KEY):
        right = {c.number: c for c in choose.choose(*call).candidates}
    for mine in choice.candidates:
        for name in ("signature", "bytes", "matches", "fault", "layouts"):
            if getattr(mine, name) != getattr(right[mine.number], name):
                raise Rejected([f"  yours           changes c.{name}: return a key, and leave c as it is"],
                               not_dearer)


_KEY = copy_function(_fewest_bytes)


def _describe_program(case):
    given, calls = case
    names = [*"abc", *(f"v{i}" for i in range(len(calls)))]
    laid = ", ".join(f"{n} {s}" for n, s in zip(names, given))
    run = "; ".join(f"{names[3 + i]} = {op}({', '.join(names[j] for j in ins)})"
                    for i, (op, ins) in enumerate(calls))
    return f"{laid}: {run}"


UPDATES = [(("S0", "B", "P"), (("assign", (0, 1)),))]  # a call without outputs


@holds("the choice is the same every time", _programs, _smaller_programs, cases=40, told=_describe_program,
       edges=UPDATES)
def again(case, yours):
    first, second = _choices(case)[0], _choices(case)[0]
    for a, b in zip(first, second):
        if a.signature != b.signature:
            return [f"  {a.op.name:15s} gets one signature now and another the next time",
                    "  every rank must choose the same signature"]
    return None


@holds("no more expensive than all inputs to B", _programs, _smaller_programs, cases=60,
       told=_describe_program, edges=UPDATES)
def not_dearer(case, yours):
    for c in _choices(case)[0]:
        whole = next((k for k in c.candidates if not k.fault and all(s == ("B",) for s in k.signature)), None)
        if whole is not None and c.bytes > whole.bytes:
            return [f"  yours           {text(c.op, c.signature)}: {c.bytes:,} bytes to move its "
                    f"inputs", f"  all B needs {int(whole.bytes):,} bytes"]
    return None


def fewest_bytes_stars(yours, seed=0):
    """Return the bytes moved in 60 programs, including the conversion of each final result to S(0)."""
    rng = random.Random(seed + 5)
    programs = [_programs(rng, 4) for _ in range(60)]

    def bill():
        return sum(sum(c.bytes for c in choices) + last for choices, last in map(_choices, programs))

    mine = bill()
    with swapped(_fewest_bytes, _KEY):
        return {"bytes": mine, "library": bill()}
