"""Helpers for the laws of Cython kernels: call a kernel as the engine does, and compare its result with NumPy.

A case is (shapes of the inputs, attributes, kind of values, threads). Outputs are surrounded by guard bytes,
and inputs are compared afterwards, because a kernel checks nothing and may write outside its outputs.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowedu.errors import ArgumentError
from flowedu.swap.build import build
from flowedu.swap.contract import bound_with_work
from flowedu_course import laws
from flowedu_course.laws import Law, smaller_shapes

FENCE, FRESH = 4096, 0xA5                           # guard bytes around an output; their value
NUMBERS = ("whole numbers", "fractions", "equal numbers", "numbers with a NaN", "numbers with inf",
           "numbers near 1000")


class Compiled:
    """A kernel compiled from a source whose `table()` returns {name: {FE_F32: (kernel, scratch)}}.

    Both are addresses; `scratch` is that of the function for the scratch size, or 0. Raises KernelError if
    the source does not compile, and ArgumentError if the table has no such kernel.
    """

    def __init__(self, name: str, source: str):
        module = build(source)
        try:
            row = module.table()[name][0]
            self.address, self.work = int(row[0]), int(row[1])
        except (AttributeError, KeyError, TypeError, IndexError, ValueError):
            raise ArgumentError(f"the file has no kernel {name}", at="", got="", expected="",
                                fix=f'table() returns {{"{name}": {{FE_F32: (<size_t><void *>{name}, 0)}}}}') from None
        self.name, self.source, self.module = name, source, module

    def run(self, case: Case, outputs: Sequence[tuple[tuple[int, ...], type]]) -> Ran:
        """Run the kernel on a case and return its outputs, its status, and whether it wrote outside them."""
        arrays = inputs(case)
        if laws.NOTE:
            laws.NOTE.write_text(words(case), encoding="utf-8")
        given = [a.copy() for a in arrays]
        rooms = [np.full(np.dtype(t).itemsize * int(np.prod(s)) + 2 * FENCE, FRESH, np.uint8)
                 for s, t in outputs]
        outs = [r[FENCE:len(r) - FENCE].view(t).reshape(s) for r, (s, t) in zip(rooms, outputs)]
        bound = self.bound([*arrays, *outs], len(arrays), case.ints, case.threads)
        status = bound()
        beside = any((r[:FENCE] != FRESH).any() or (r[-FENCE:] != FRESH).any() for r in rooms)
        return Ran(arrays, outs, status, beside or getattr(bound, "beside", False),
                   not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(given, arrays)))

    def bound(self, arrays: Sequence[np.ndarray], nin: int, ints: Sequence[int], threads: int = 1,
              name: str = "") -> Any:
        """Bind the kernel to arrays; `name` selects another kernel of the file that needs no scratch memory."""
        if name:
            code = int(arrays[0].dtype == np.float64)
            return bound_with_work(self.module.table()[name][code][0], 0, arrays, nin, ints, threads)
        return bound_with_work(self.address, self.work, arrays, nin, ints, threads)


class Case(NamedTuple):
    shapes: tuple[tuple[int, ...], ...]
    ints: tuple[int, ...]
    numbers: str
    threads: int


class Ran(NamedTuple):
    inputs: list[np.ndarray]
    outputs: list[np.ndarray]
    status: int
    beside: bool
    into: bool


class Task(NamedTuple):
    """The specification of a kernel.

    draw(rng, size) returns (shapes, ints), meaning(arrays, ints) the output by NumPy, shape(shapes, ints) the
    output's shape, and note(case, got, want) a hint for a wrong value. `edges` has results of draw that every
    law tries first.
    """

    draw: Callable
    meaning: Callable
    shape: Callable
    numbers: tuple[str, ...] = NUMBERS
    dtype: type = np.float32
    note: Callable = lambda case, got, want: ""
    near: float = 1e-5
    edges: tuple = ()

    def cases(self, threads: int = 1) -> list[Case]:
        """Return the edge cases, with each kind of numbers in turn."""
        numbers = itertools.cycle(self.numbers)
        return [Case(*edge, next(numbers), threads) for edge in self.edges]


def inputs(case: Case) -> list[np.ndarray]:
    rng, made = np.random.default_rng(sum(case.ints) + len(case.numbers)), []
    for s in case.shapes:
        x = rng.integers(-9, 10, s).astype(np.float32)
        if case.numbers == "equal numbers":
            x[...] = 3
        elif "whole" not in case.numbers:
            x += rng.random(s, np.float32)
        if case.numbers == "numbers near 1000":
            x += 1000
        if case.numbers == "numbers near -1000":
            x -= 1000
        if x.size and case.numbers.endswith("numbers with a NaN"):
            x.flat[rng.integers(x.size, size=1 + x.size // 8)] = np.nan
        if x.size and case.numbers.endswith("numbers with inf"):
            x.flat[rng.integers(x.size)] = rng.choice([np.inf, -np.inf])
        made.append(x)
    return made


def words(case: Case) -> str:
    shapes = ", ".join(f"{n} {s}" for n, s in zip("x" if len(case.shapes) == 1 else "ab", case.shapes))
    ints = f", ints {list(case.ints)}" if case.ints else ""
    return f"{shapes}{ints}, {case.numbers}, {case.threads} thread{'s' if case.threads > 1 else ''}"


# ---- laws of any kernel
def _cases(task: Task, most: int = 3) -> Callable:
    def draw(rng, size):
        shapes, ints = task.draw(rng, size)
        return Case(shapes, ints, rng.choice(task.numbers), rng.choice((1, 1, min(2, most), most)))
    return draw


def _smaller(task: Task) -> Callable:
    def smaller(case: Case) -> Iterator[Case]:
        if case.threads > 1:
            yield case._replace(threads=1)
        if case.numbers != task.numbers[0]:
            yield case._replace(numbers=task.numbers[0])
        if len(case.shapes) == 1:
            for s in smaller_shapes(case.shapes[0]):
                if len(s) == len(case.shapes[0]):
                    yield case._replace(shapes=(s,))
        else:
            yield from (case._replace(shapes=s) for s in _smaller_pairs(*case.shapes))
    return smaller


def _smaller_pairs(a: tuple[int, ...], b: tuple[int, ...]) -> Iterator[tuple]:
    (m, k), (_, n) = a, b
    for s in ((m - 1, k, n), (m, k - 1, n), (m, k, n - 1)):
        if min(s) > 0:
            yield (s[0], s[1]), (s[1], s[2])


def _ran(task: Task, case: Case, yours: Compiled) -> Ran:
    return yours.run(case, [(task.shape(case.shapes, case.ints), task.dtype)])


def inside(task: Task, most: int = 3) -> Law:
    def judge(case, yours):
        ran = _ran(task, case, yours)
        if ran.status:
            return [f"  yours           returns {ran.status}", "  should be       FE_OK, which is 0"]
        if ran.beside:
            return ["  it wrote outside its output: check the last row and the last column"]
        if ran.into:
            return ["  it wrote to its input, which other ops may still read"]
        return None
    return Law("only the output is written", _cases(task, most), judge, _smaller(task), cases=60, told=words,
               edges=task.cases())


def values(task: Task, title: str = "values equal NumPy's", most: int = 3) -> Law:
    def judge(case, yours):
        ran = _ran(task, case, yours)
        return compared(case, ran.inputs, ran.outputs[0], task)
    return Law(title, _cases(task, most), judge, _smaller(task), cases=120, told=words, edges=task.cases())


def shared(task: Task) -> Law:
    """Check that exactly one thread writes each element, by running the threads one after the other."""
    def judge(case, yours):
        arrays, shape = inputs(case), task.shape(case.shapes, case.ints)
        size, n = np.dtype(task.dtype).itemsize, int(np.prod(shape))
        writers = np.zeros(n, np.int64)
        for tid in range(case.threads):
            room = np.full(n * size, FRESH, np.uint8)
            y = room.view(task.dtype).reshape(shape)
            yours.bound([*arrays, y], len(arrays), case.ints, case.threads).alone(tid)
            writers += (room.reshape(n, size) != FRESH).any(1)
        if (writers == 1).all():
            return None
        first = int(np.argmax(writers != 1))
        at = [int(i) for i in np.unravel_index(first, shape)]
        many = f"{writers[first]} threads" if writers[first] else "no thread"
        return [f"  y{at} is written by {many}: fe_split returns the part of each thread"]
    return Law("each element is computed by one thread",
               lambda rng, size: _cases(task)(rng, size)._replace(threads=rng.randint(2, 4)),
               judge, lambda case: (c for c in _smaller(task)(case) if c.threads > 1), cases=40, told=words,
               edges=task.cases(3))


def compared(case: Case, arrays: list[np.ndarray], got: np.ndarray, task: Task) -> list[str] | None:
    with np.errstate(all="ignore"):
        want = np.asarray(task.meaning(arrays, case.ints))
        wrong = ~np.isclose(got, want, rtol=task.near, atol=task.near, equal_nan=True)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    fresh = got[at].tobytes() == bytes([FRESH]) * got.itemsize
    lines = []
    if sum(a.size for a in arrays) <= 8:
        names = ["x"] if len(arrays) == 1 else ["a", "b"]
        lines += [f"  {n:15s} {_array(a)}" for n, a in zip(names, arrays)]
    place = f"y{list(at)}" if at else "y"
    lines += [f"  yours           {place} {'was not written' if fresh else f'= {got[at]:.6g}'}",
              f"  should be       {want[at]:.6g}"]
    note = task.note(case, got, want)
    return [*lines, f"  {note}"] if note else lines


def _array(a: np.ndarray) -> str:
    return " ".join(np.array2string(a, precision=3).split())
