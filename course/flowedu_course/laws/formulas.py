"""Laws of chapter 2: formulas traced into kernels, and forward-mode derivatives."""
from __future__ import annotations

import operator
import random

import numpy as np

import flowedu as flow
from flowedu.autograd.forward import Dual, Forward, derivative
from flowedu.core.ops.call import interpreter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import float32, float64
from flowedu.errors import UnsupportedError
from flowedu.ops.formula import Tracer, inline, reference, trace
from flowedu.swap import swapped
from flowedu_course.laws import Words, copy_function, holds, pair, smaller_programs, where_differ
from flowedu_course.laws.programs import evaluate

# name: number of inputs. The formula of "log_sigmoid" has several steps, that of "hardsigmoid" also constants
OPS = {"add": 2, "mul": 2, "sub": 2, "neg": 1, "sin": 1, "square": 1, "log_sigmoid": 1, "hardsigmoid": 1}
STEPS = {"log_sigmoid": 3, "hardsigmoid": 7}         # 1 for all other ops
ROOM = 30                                           # a kernel's 32 slots without x and y
NUMBERS = (2.0, 0.5, 3.0, -1.0, 0.25)
# 0.0 == -0.0, but x * 0.0 and x * -0.0 differ in sign.
ZEROS = (2.0, 0.0, -0.0, 1.0, -2.0)
CONSTANTS, FIRST = range(2, 7), 7                   # indices of the constants, and of the first result
SIGNS = {"add": operator.add, "mul": operator.mul, "sub": operator.sub, "neg": operator.neg}


def _programs(rng, size):
    """Draw ((name, values) of each call, outputs).

    Values 0 and 1 are x and y, CONSTANTS are constants. The program fits into one kernel even if equal
    calls are not merged.
    """
    calls = []
    for i in range(rng.randint(1, 2 * size)):
        if calls and rng.random() < 0.35:
            calls.append(calls[rng.randrange(len(calls))])             # a repeated call
            continue
        name = rng.choice(list(OPS))
        known = [0, 1, *range(FIRST, FIRST + i)]
        pick = lambda known=known: rng.choice(CONSTANTS if rng.random() < 0.3 else known)
        ins = tuple(pick() for _ in range(OPS[name]))
        calls.append((name, ins if any(v not in CONSTANTS for v in ins) else (0, *ins[1:])))
    while sum(STEPS.get(name, 1) + sum(v in CONSTANTS for v in ins) for name, ins in calls) > ROOM:
        calls.pop()
    return tuple(calls), (FIRST - 1 + len(calls),)


def _smaller_programs(case):
    for calls, outs in smaller_programs(*case, first=FIRST):
        if all(any(v not in CONSTANTS for v in ins) for _, ins in calls):
            yield calls, outs


def _numbers(case):
    """Return the constants (CONSTANTS); every third formula has zeros of both signs."""
    return NUMBERS if len(case[0]) % 3 else ZEROS


def _formula(case, ops):
    """Return the program as a Python function of x and y."""
    def f(x, y):
        values = [x, y, *_numbers(case)]
        for name, ins in case[0]:
            values.append((SIGNS.get(name) or ops[name])(*(values[i] for i in ins)))
        return values[case[1][0]]
    return f


def _describe(case):
    names = ["x", "y", *map(str, _numbers(case))] + [f"v{i}" for i in range(len(case[0]))]
    calls = "; ".join(f"{names[FIRST + i]} = {name}({', '.join(names[v] for v in ins)})"
                      for i, (name, ins) in enumerate(case[0]))
    return f"{calls}; the result is {names[case[1][0]]}"


def _ran(formula, given):
    """Evaluate a Formula step by step. Return the result, or an error text."""
    known = {**dict(enumerate(given)), **{s: np.float64(v) for s, v in formula.consts.items()}}
    for name, out, operands in formula.instrs:
        if out in known:
            return f"slot {out} is written twice; the second write is by {name}"
        missing = [o for o in operands if o not in known]
        if missing:
            return f"{name} reads slot {missing[0]}, which no earlier step wrote"
        known[out], = evaluate(REGISTRY[name], [known[o] for o in operands], ())
    return known.get(formula.outs[0], f"the result should be in slot {formula.outs[0]}, which no step wrote")


def _wrong_steps(case, formula):
    """Return the lines of a failure if a traced formula does not compute what the program computes."""
    rng = np.random.default_rng(3)
    given = [rng.standard_normal(3) for _ in range(2)]
    right = reference(_formula(case, REGISTRY))(*given)
    said = [f"  yours           {formula.describe() or 'no steps'}"]
    got = _ran(formula, given)
    if isinstance(got, str):
        return [*said, f"  {got}"]
    slots = sorted([*range(formula.nin), *formula.consts, *(out for _, out, _ in formula.instrs)])
    if slots != list(range(formula.nslots)):
        return [*said, f"  slots {slots}: number them from 0, without gaps or duplicates"]
    got = np.broadcast_to(got, right.shape)
    lines = where_differ("result", got, right)
    signs = (right == 0) & (np.signbit(got) != np.signbit(right))
    if not lines and signs.any():
        lines = [
            f"  the result is {got[signs][0]}, should be {right[signs][0]}: 0.0 and -0.0 differ"]
    return [*said, *lines] if lines else None


@holds("the steps compute the formula", _programs, _smaller_programs, cases=200, told=_describe, edges=[
    ((("log_sigmoid", (0,)),), (FIRST,)),
    (tuple(("add", (FIRST - 1 + i if i else 0, c)) for i, c in enumerate(CONSTANTS)), (FIRST + 4,)),
    ((("mul", (0, 3)), ("mul", (0, 4)), ("neg", (FIRST,))), (FIRST + 1,))])
def traced(case, yours):
    return _wrong_steps(case, trace(_formula(case, REGISTRY), ["x", "y"]))


@holds("a constant has its own dtype", lambda rng, size: None, cases=1,
       told=lambda case: "2.0 of float32, float64, and float32")
def dtypes(case, yours):
    tracer, kinds = Tracer(0), (float32, float64, float32)
    got = [tracer.number(2.0, kind).spec.dtype for kind in kinds]
    return None if got == list(kinds) else pair("should be", *(Words(", ".join(map(str, k))) for k in (got, kinds)))


def number_stars(yours, seed=0):
    """Count the slots of 100 formulas, for the student's and for the library's tracer."""
    rng = random.Random(seed + 2)
    programs = [_programs(rng, 4) for _ in range(100)]
    formulas = lambda: [trace(_formula(p, REGISTRY), ["x", "y"]) for p in programs]
    mine = formulas()
    for program, formula in zip(programs, mine):
        traced.accept(program, _wrong_steps(program, formula))
    with swapped(Tracer.number, _NUMBER), swapped(inline, _INLINE):
        return {"slots": sum(f.nslots for f in mine), "library": sum(f.nslots for f in formulas())}


_NUMBER, _INLINE = copy_function(Tracer.number), copy_function(inline)


# ---- forward-mode derivatives
RULES = {"add": 2, "sub": 2, "mul": 2, "neg": 1, "sin": 1, "exp": 1}


def _expressions(rng, size):
    """Draw programs of x and constants; value 1 is a constant tensor."""
    calls = []
    for i in range(rng.randint(1, 2 * size)):
        name = rng.choice(list(RULES))
        known = [0, *range(FIRST, FIRST + i)]
        pick = lambda known=known: rng.choice((1, *CONSTANTS) if rng.random() < 0.3 else known)
        ins = tuple(pick() for _ in range(RULES[name]))
        calls.append((name, ins if any(v not in (1, *CONSTANTS) for v in ins) else (0, *ins[1:])))
    return tuple(calls), (FIRST - 1 + len(calls),)


def _smaller_expressions(case):
    for calls, outs in smaller_programs(*case, first=FIRST):
        if all(any(v not in (1, *CONSTANTS) for v in ins) for _, ins in calls):
            yield calls, outs


@holds("the rate equals finite differences", _expressions, _smaller_expressions, cases=150, told=_describe)
def rates(case, yours):
    f = _formula(case, REGISTRY)
    x, y = np.array([0.3, -0.7]), flow.tensor([[0.5, 2.0], [1.5, -1.0]], dtype=flow.float64)
    value = lambda at: f(flow.tensor(at, dtype=flow.float64), y).numpy()
    got = derivative(lambda v: f(v, y), flow.tensor(x, dtype=flow.float64))
    lines = where_differ("rate", np.asarray(got.numpy()), (value(x + 1e-5) - value(x - 1e-5)) / 2e-5)
    return [*lines, "  expected: finite differences at x = 0.3 and -0.7"] if lines else None


@holds("a rate has a gradient", _expressions, _smaller_expressions, cases=60, told=_describe)
def rates_of_gradients(case, yours):
    """Check reverse mode over forward mode: the gradient of a derivative is the second derivative."""
    f = _formula(case, REGISTRY)
    x, y = np.array([0.3, -0.7]), flow.tensor([0.5, 2.0], dtype=flow.float64)
    rate = lambda at: derivative(lambda v: f(v, y), at)
    t = flow.tensor(x, dtype=flow.float64, requires_grad=True)
    slope = rate(t)
    got = flow.autograd.grad(slope.sum(), t)[0].numpy() if slope.requires_grad else np.zeros(2)
    ends = [rate(flow.tensor(x + s, dtype=flow.float64)).numpy() for s in (1e-5, -1e-5)]
    lines = where_differ("its gradient", got, (ends[0] - ends[1]) / 2e-5)
    return [*lines, "  values that went through numpy() are constants"] if lines else None


@holds("the rate of a constant is 0, also of inf", _expressions, _smaller_expressions, cases=60,
       told=_describe,
       edges=[((("add", (0, 1)),), (FIRST,)), ((("sub", (1, 0)),), (FIRST,))])
def rates_of_inf(case, yours):
    """Check sums and differences, whose rate does not depend on the constant y."""
    if not {name for name, _ in case[0]} <= {"add", "sub", "neg"}:
        return None
    f, x = _formula(case, REGISTRY), flow.tensor([0.5] * 3, dtype=flow.float64)
    got, want = (derivative(lambda v, y=y: f(v, flow.tensor(y, dtype=flow.float64)), x).numpy().tolist()
                 for y in ([np.inf, -np.inf, np.nan], [1.0] * 3))
    return None if got == want else ["  y               inf, -inf, NaN", *pair("should be", got, want)]


PLAIN, NO_RULE = "no Dual: [1, 2] + [3, 4]", "tanh(x), which has no rule"


@holds("calls without a Dual are unchanged", lambda rng, size: 0, cases=1, told=lambda case: PLAIN)
def plain(case, yours):
    with interpreter(Forward()):
        got = flow.tensor([1.0, 2.0]) + flow.tensor([3.0, 4.0])
    if isinstance(got, Dual) or not np.array_equal(got.numpy(), [4.0, 6.0]):
        return [f"  yours           {type(got).__name__}",
                "  should be       [4, 6], a plain tensor, which call_below returns"]
    return None


@holds("an op without a rule raises an error", lambda rng, size: 0, cases=1, told=lambda case: NO_RULE)
def no_rule(case, yours):
    try:
        got = derivative(flow.ops.REGISTRY["tanh"], flow.tensor([1.0]))
    except UnsupportedError:
        return None
    return [f"  yours           {got!r}", "  should be       an error: raise no_rule(op)"]
