"""Laws of chapter 8 for the CPU: results and speed of each Cython kernel. called.py calls the kernels."""
from __future__ import annotations

import math
import timeit
from collections.abc import Callable

import numpy as np

import flowedu as flow
from flowedu._kernels import TABLE
from flowedu.core.ops.define import REGISTRY
from flowedu.swap.build import annotated, loops
from flowedu.swap.contract import bound_with_work
from flowedu_course.kernels import entered, timed
from flowedu_course.laws import SMALLEST, Law, become, each, fewer, holds, less, simpler
from flowedu_course.laws.called import (
    FRESH,
    NUMBERS,
    Case,
    Compiled,
    Task,
    compared,
    inputs,
    inside,
    shared,
    values,
)


# ---- running sums
def _scan(rng, size):
    shape = _shape(rng, size, rng.randint(1, min(3, size)))
    return (shape,), (rng.randrange(len(shape)), rng.randint(0, 1))


def _shape(rng, size, rank, least=0):
    """Draw a shape with small axes and sometimes one long axis."""
    shape = [rng.choice((least, 1, 1, 2, 3, 1 + size)) for _ in range(rank)]
    if rng.random() < 0.4:
        shape[rng.randrange(rank)] = rng.choice((16, 17, 50 * size, 129))
    return tuple(shape)


def _cumsum(arrays, ints):
    x, (axis, backwards) = arrays[0], ints
    turned = np.flip(x, axis) if backwards else x
    y = np.cumsum(turned, axis, dtype=np.float64)
    return (np.flip(y, axis) if backwards else y).astype(np.float32)


def _cumsum_note(case, got, want):
    if case.ints[1]:
        return "ints[1] is 1: the sums run from the end to the beginning"
    return "" if case.ints[0] == len(case.shapes[0]) - 1 else f"ints[0] is the axis, here {case.ints[0]}"


def _one(*shapes):
    """Return edges of a task: (shapes, attributes), with an axis and a direction."""
    return tuple(((s,), (axis, i % 2)) for i, (s, axis) in enumerate(shapes))


CUMSUM = Task(_scan, _cumsum, lambda shapes, ints: shapes[0], note=_cumsum_note, edges=_one(
    ((0,), 0), ((1,), 0), ((2, 0, 3), 0), ((0, 3), 1), ((2, 1), 1), ((3, 128), 0), ((3, 129), 0),
    ((2, 3, 127), 1),
    ((17,), 0)))
cumsum_inside, cumsum_shared, cumsum_values = inside(CUMSUM), shared(CUMSUM), values(CUMSUM)


@holds("a million times 0.1 sums to 100,000", lambda rng, size: (1, 1_000_000), cases=1,
       told=lambda case: f"x {case}, each 0.1", label="case")
def cumsum_carried(case, yours):
    x = np.full(case, 0.1, np.float32)
    y = np.zeros_like(x)
    yours.bound([x, y], 1, (len(case) - 1, 0))()
    want = np.cumsum(x, -1, dtype=np.float64)[..., -1].flat[0]
    if abs(y[..., -1].flat[0] - want) < 1e-3 * want:
        return None
    return [f"  yours           ends at {y[..., -1].flat[0]:,.1f}",
            f"  should be       {want:,.1f}", "  a float has 24 bits: the running sum needs more"]


# ---- softmax of rows
def _rows(rng, size):
    shape = _shape(rng, size, rng.choice((1, 2, 2, 3)))
    return (shape,), (len(shape) - 1,)


def _softmax(arrays, ints):
    x = arrays[0].astype(np.float64)
    if x.size == 0:
        return arrays[0]
    e = np.exp(x - x.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).astype(np.float32)


def _softmax_note(case, got, want):
    if case.numbers == "numbers near 1000":
        return "exp(1000) is inf: subtract the largest of the row first"
    if case.numbers == "numbers near -1000":
        return "exp(-1000) is 0, and so is the sum: the largest of the row may be negative"
    if len(case.shapes[0]) > 2 or len(case.shapes[0]) == 1:
        return ("rows are along the last axis, for any number of axes: there are fe_numel(&call.args[0]) / n "
                "rows")
    return f"your row sums to {np.nansum(got[0]):.4g}" if len(got) else ""


PLAIN = ("whole numbers", "fractions", "equal numbers", "numbers with a NaN")
SOFTMAX = Task(_rows, _softmax, lambda shapes, ints: shapes[0], PLAIN, note=_softmax_note, edges=tuple(
    ((s,), (len(s) - 1,)) for s in ((1,), (0, 3), (3, 0), (1, 1), (2, 16), (3, 17), (2, 2, 129))))
softmax_inside, softmax_shared = inside(SOFTMAX), shared(SOFTMAX)
softmax_values = values(SOFTMAX, "values equal NumPy's; each row sums to 1")
softmax_large = values(SOFTMAX._replace(numbers=("numbers near 1000", "numbers near -1000")),
                       "large numbers do not overflow")


# ---- argmax
def _argmax_cases(rng, size):
    shape = _shape(rng, size, rng.randint(1, min(3, size)), 1)
    axis = rng.randrange(len(shape))
    shape = tuple(rng.choice((0, n, n, n)) if i != axis else n for i, n in enumerate(shape))
    return (shape,), (axis,)


def _argmax_note(case, got, want):
    if case.numbers == "equal numbers":
        return "choose the first of equal elements"
    return "choose the first NaN, which counts as the largest element" if "NaN" in case.numbers else ""


ARGMAX = Task(_argmax_cases, lambda arrays, ints: np.argmax(arrays[0], ints[0]),
              lambda shapes, ints: shapes[0][:ints[0]] + shapes[0][ints[0] + 1:], dtype=np.int64,
              note=_argmax_note, near=0, edges=tuple(((s,), (axis,)) for s, axis in (
                  ((1,), 0), ((0, 3), 1), ((3, 0), 0), ((2, 1), 1), ((2, 16), 1), ((2, 17), 1), ((3, 129), 0),
                  ((2, 3, 2), 1), ((129,), 0))))
argmax_inside, argmax_shared = inside(ARGMAX), shared(ARGMAX)
argmax_values = values(ARGMAX._replace(numbers=("fractions",)))
argmax_equal = values(ARGMAX._replace(numbers=("equal numbers", "whole numbers")),
                      "the first of equal elements is chosen")
argmax_nan = values(ARGMAX._replace(numbers=("numbers with a NaN", "numbers with inf")),
                    "a NaN counts as the largest element")


# ---- a sum over all elements, split among threads
def _lengths(rng, size):
    return ((rng.choice((1, 2, 3, 1 + size, 1000 * size, 1024, 1025)),),), (1,)


SUM = Task(_lengths, lambda arrays, ints: arrays[0].sum(dtype=np.float64).astype(np.float32),
           lambda shapes, ints: (),
           (*NUMBERS[:2], "numbers with inf", "numbers with a NaN"), near=1e-4,
           edges=tuple((((n,),), (1,)) for n in (1, 2, 1023, 1024, 1025, 2048)),
           note=lambda case, got, want: "for a thread without work, fe_split "
           "returns lo == hi"
           if case.threads > case.shapes[0][0] else "")
sum_inside, sum_values = inside(SUM, 4), values(SUM, "one thread computes NumPy's value", most=1)


@holds("1 to 4 threads give the same bits",
       lambda rng, size: (rng.choice((4096, 10_000, 65_537)) * size, rng.randint(2, 4)), cases=12,
       told=lambda case: f"{case[0]:,} numbers, {case[1]} threads")
def sum_same(case, yours):
    n, threads = case
    rng = np.random.default_rng(n)
    x = (rng.standard_normal(n) * 10 ** rng.uniform(-10, 10, n)).astype(np.float32)
    x[n // 2:n // 2 * 2] = -x[:n // 2]                               # cancellation shows the last bits
    rng.shuffle(x)
    found = []
    for t in (1, *[threads] * 30):
        y = np.zeros((), np.float32)
        yours.bound([x, y], 1, (1,), t)()
        found.append(float(y))
        if found[-1] != found[0]:
            near = abs(found[-1] - found[0]) < 1e-3 * np.abs(x).max()
            return ([f"{SMALLEST}{n:,} numbers", f"  1 thread        {found[0]:.9g}",
                     f"  {threads} threads       {found[-1]:.9g}",
                     "  parts of a fixed size, added in order, do not depend on the number of threads"
                     if near else
                     "  each thread needs its own sum, and a barrier before these sums are added"])
    want, most = math.fsum(x.tolist()), float(np.abs(x.astype(np.float64)).sum())
    if abs(found[0] - want) > 1e-6 * abs(want) + 1e-13 * most:
        return [f"{SMALLEST}{n:,} numbers, large ones of both signs", f"  yours           {found[0]:.9g}",
                f"  should be       {want:.9g}",
                "  add in double: in float, small numbers are lost when added to large ones"]
    return None


# ---- a matrix product
def _sides(rng, size):
    m, k, n = (rng.choice((1, 2, 3, 4, 5, 8 * size, 33)) for _ in range(3))
    return ((m, k), (k, n)), (0, 0)


# 0 * inf and 0 * NaN are NaN.
OF_PRODUCTS = (*NUMBERS[:2], "whole numbers with inf", "whole numbers with a NaN")
MATMUL = Task(_sides, lambda arrays, ints: arrays[0].astype(np.float64) @ arrays[1], lambda shapes, ints:
              (shapes[0][0], shapes[1][1]), OF_PRODUCTS,
              near=1e-3, edges=tuple((((m, k), (k, n)), (0, 0)) for m, k, n in (
                  (1, 1, 1), (4, 3, 32), (4, 2, 33), (5, 1, 31), (8, 16, 64), (3, 4, 32), (4, 4, 32),
                  (9, 5, 65))),
              note=lambda case, got, want:
              f"y is {got.shape}: compute the incomplete tiles at the end of rows and columns, too")
matmul_inside, matmul_shared, matmul_values = inside(MATMUL), shared(MATMUL), values(MATMUL)


# ---- a line of C
def _snake_cases(rng, size):
    return [rng.uniform(-3 * size, 3 * size) for _ in range(1 + size)], rng.choice((np.float32, np.float64))


def _formula(name, meaning, title):
    def judge(case, yours):
        x = np.array(case[0], case[1])
        got = np.zeros_like(x)
        yours.bound([x, got], 1, (), name=name)()
        return _differs(name, x, got, meaning)
    law = Law(title, _snake_cases, judge, lambda case: ([[x], case[1]] for x in case[0] if len(case[0]) > 1),
              60, lambda case: f"{name} of {', '.join(f'{x:.4g}' for x in case[0])}, {np.dtype(case[1])}",
              edges=[([0.0, -0.0, 1.0], t) for t in (np.float32, np.float64)])
    return law, lambda x, got: law.accept((x, np.float32), _differs(name, x, got, meaning))


def _differs(name, x, got, meaning):
    """Return the lines of a failure if a line of C has computed another value than `meaning`, or None."""
    want = meaning(x.astype(np.float64))
    wrong = ~np.isclose(got, want, rtol=0, atol=1e-12 if x.dtype == np.float64 else 1e-5)
    if not wrong.any():
        return None
    i = int(np.argmax(wrong))
    digits = 12 if x.dtype == np.float64 else 6
    lines = [f"{SMALLEST}{name} of {x[i]:.4g}, {x.dtype}", f"  yours           {got[i]:.{digits}f}",
             f"  should be       {want[i]:.{digits}f}"]
    near = abs(got[i] - want[i]) < 1e-4
    return [*lines,
            *(["  double needs another function: FE_F(sinf, sin, a) selects it by T"] if near else [])]


snake_values, _accept_values = _formula("snake", lambda x: x + np.sin(x) ** 2,
                                        "values are x + sin(x)^2, for both dtypes")
snake_slope, _accept_slope = _formula("snake_slope", lambda x: 1 + np.sin(2 * x),
                                      "the derivative is correct for both dtypes")


# ---- as an op of the library
def _op_cases(rng, size):
    shape = tuple(rng.randint(1, 2 + size) for _ in range(rng.randint(1, min(3, size))))
    steps = tuple(rng.choice((1, 1, 2, 3)) for _ in shape)
    return shape, steps, rng.random() < 0.3, rng.randrange(len(shape)), rng.randint(0, 1)


def _describe_view(case, axis=None):
    shape, steps, turned, own, _ = case
    whole = tuple(s * n for s, n in zip(steps, shape))
    look = ", ".join(f"{s - 1}::{s}" for s in steps)
    return f"flow.tensor{whole}[{look}]{'.T' * turned}, axis {own if axis is None else axis}"


def as_op(name: str, task: Task, attributes: Callable[[int, int], dict], last: bool = False) -> Law:
    """Return a law that runs the library's op on the student's kernel, with views (the engine packs them)."""
    def judge(case, yours):
        shape, steps, turned, axis, other = case
        axis = len(shape) - 1 if last else axis
        whole = inputs(Case((tuple(s * n for s, n in zip(steps, shape)),), (0,), "whole numbers", 1))[0]
        look = tuple(slice(s - 1, None, s) for s in steps)
        x = whole[look]
        mine = flow.tensor(whole)[look]
        if turned:
            x, mine = x.T, mine.permute(*reversed(range(len(shape))))
        with entered(name, yours.address, yours.work):
            got = REGISTRY[name](mine, **attributes(axis, other)).numpy()
        own = Case((x.shape,), (axis, other), "whole numbers", 1)
        lines = compared(own, [x], got, task)
        return lines and [SMALLEST + _describe_view(case, axis), *lines]

    def smaller(case):
        shape, steps, turned, _, other = case
        yield from simpler((2, become(False)))(case)
        yield from ((s, t, turned, 0, other) for s, t in zip(fewer(shape), fewer(steps)))
        yield from simpler((0, each(less(1))), (1, each(become(1))))(case)

    return Law("it works as an op, on views of any strides", _op_cases, judge, smaller, 40, _describe_view)


cumsum_op = as_op("cumsum", CUMSUM, lambda axis, back: {"axis": axis, "backwards": bool(back)})
softmax_op = as_op("softmax", SOFTMAX, lambda axis, _: {"axis": axis}, last=True)
argmax_op = as_op("argmax", ARGMAX, lambda axis, _: {"axis": axis})


# ---- stars: scores, and times compared with NumPy and the library, in one process on one thread
def measured(yours: Compiled, arrays: list[np.ndarray], output: np.ndarray, ints: tuple[int, ...],
             by_numpy: Callable, task: Task, values: Law) -> list[dict]:
    """Measure scores and times of the kernel, NumPy, and the library, on one thread.

    The law `values` judges the output of a run of this size, and that of the timed runs.
    """
    score = max((line.score for line in loops(annotated(yours.source))), default=0)
    mine, nin = np.empty_like(output), len(arrays)
    run = yours.bound([*arrays, mine], nin, ints)
    case = Case(tuple(a.shape for a in arrays), ints, "fractions", 1)
    judge = lambda: values.accept(case, compared(case, arrays, mine, task))
    mine.reshape(-1).view(np.uint8)[:] = FRESH
    run()
    judge()
    library = bound_with_work(*TABLE[yours.name, 0], [*arrays, output], nin, ints)
    found = in_turns({"yours": run, "NumPy": by_numpy, "library": library}, score)
    judge()
    return found


def _measure_seconds(f: Callable, number: int) -> float:
    """Return the seconds of `number` calls, measured where f runs: here or in another process."""
    return f.measure_seconds(number) if hasattr(f, "measure_seconds") else timeit.timeit(f, number=number)


def in_turns(runs: dict[str, Callable], score: int) -> list[dict]:
    """Measure three times; each time is the fastest of 7 runs."""
    if not timed():
        return [{"right": True, "score": score}]
    repeat = {k: max(1, min(100, int(2e-4 / max(_measure_seconds(f, 1), 1e-7)))) for k, f in runs.items()}
    tries = []
    for _ in range(3):
        best = dict.fromkeys(runs, float("inf"))
        for _ in range(7):
            for k, f in runs.items():
                best[k] = min(best[k], 1e6 * _measure_seconds(f, repeat[k]) / repeat[k])
        tries.append({"right": True, "score": score, **best})
    return tries


def _draw(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _stars(shape: tuple[int, ...], ints: tuple[int, ...], by_numpy: Callable, task: Task,
           values: Law) -> Callable:
    """Return a function that measures a kernel of one input. by_numpy(x, y) computes the same."""
    def stars(yours, seed=0):
        x = _draw(seed, *shape)
        y = np.empty(task.shape((shape,), ints), task.dtype)
        return measured(yours, [x], y, ints, lambda: by_numpy(x, y), task, values)
    return stars


def _softmax_by_numpy(x, y):
    e = np.exp(x - x.max(1, keepdims=True))
    e /= e.sum(1, keepdims=True)


cumsum_stars = _stars((256, 256), (0, 0), lambda x, y: np.cumsum(x, 0, out=y), CUMSUM, cumsum_values)
softmax_stars = _stars((64, 256), (1,), _softmax_by_numpy, SOFTMAX, softmax_values)
argmax_stars = _stars((64, 256), (1,), lambda x, y: np.argmax(x, 1), ARGMAX, argmax_values)
sum_stars = _stars((100_000,), (1,), lambda x, y: x.sum(), SUM, sum_values)


def matmul_stars(yours, seed=0):
    a, b = _draw(seed, 2, 256, 256)
    y = np.empty_like(a)
    return measured(yours, [a, b], y, (0, 0), lambda: np.matmul(a, b, out=y), MATMUL, matmul_values)


def snake_stars(yours, seed=0):
    """Compare the times of both lines with that of a line with one sine, which is compiled with them."""
    x = _draw(seed, 10_000)
    y, slope = np.empty_like(x), np.empty_like(x)
    runs = {"yours": yours.bound([x, y], 1, (), name="snake"),
            "yours_slope": yours.bound([x, slope], 1, (), name="snake_slope")}
    found = in_turns({**runs, "sine": yours.bound([x, np.empty_like(x)], 1, (), name="one_sine")}, 0)
    for run in runs.values():
        run()
    _accept_values(x, y)
    _accept_slope(x, slope)
    return found
