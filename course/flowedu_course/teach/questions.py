"""Quantitative questions with drawn numbers: `make questions SEED=7 [CH=4] [OUT=build/questions]`.

    python -m flowedu_course.teach.questions 7 --out build/questions     sheets of questions and answers

questions.toml has the texts. Each template draws its numbers from the seed and its own name, so a question
does not change if other templates are added. The library's functions compute the answers: shapes, plans,
boxing, and schedules.
"""
from __future__ import annotations

import argparse
import math
import random
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import flowedu as flow
from flowedu.core.graph.memory import Buffer, lower_bound, place, rounded, total
from flowedu.core.ops import axes
from flowedu.core.sbp.boxing.primitives import route
from flowedu.core.sbp.choose import choose
from flowedu.core.sbp.sbp import Layout
from flowedu.core.values.place import bounds
from flowedu.core.values.spec import Spec, broadcast, row_major
from flowedu.distributed.pipeline import _turns
from flowedu.utils.data.buckets import padding
from flowedu_course.laws.schedules import clocked
from flowedu_course.teach.commands import report_errors
from flowedu_course.teach.report import put
from flowedu_course.teach.submission import select_holes

REGISTRY, F32 = flow.ops.REGISTRY, flow.float32
TEXTS = Path(__file__).with_suffix(".toml")


class Question(NamedTuple):
    """A question: its template, chapter, drawn numbers, text, answer, unit, and a formula by hand."""

    name: str
    chapter: int
    given: dict[str, Any]
    text: str
    answer: float
    unit: str
    way: str


# ---- answers
def _multiplications(name: str, *shapes: tuple) -> int:
    """Return the product of all letters of an op's equation."""
    op, specs = REGISTRY[name], [Spec(s, F32) for s in shapes]
    return math.prod(axes.sizes(op, op.equation(specs, op.complete({})), specs).values())


def _convolution(batch: int, channels: int, size: int, filters: int, kernel: int) -> int:
    op, w = REGISTRY["conv2d"], Spec((filters, channels, kernel, kernel), F32)
    y = op.infer([Spec((batch, channels, size, size), F32), w], op.complete({}))[0]
    return y.size * w.size // filters


def _windows(n: int, size: int, step: int) -> tuple:
    op = REGISTRY["unfold"]
    return op.infer([Spec((n,), F32)], op.complete(dict(axis=0, size=size, step=step)))[0]


def _boxing(src: str, dst: str, shape: tuple, k: int, first: int = 0) -> int:
    """Return the bytes from src on devices 0 to k - 1 to dst on k devices that start at `first`."""
    return route(Layout((src,), tuple(range(k)), (k,)), Layout((dst,), tuple(range(first, first + k)), (k,)),
                 Spec(shape, F32)).bytes


def _buffers(sizes: Sequence[tuple[int, int, int]]) -> list[Buffer]:
    return [Buffer(f"b{i}", "temp", n, first, last) for i, (n, first, last) in enumerate(sizes)]


def _chain(sizes: Sequence[int]) -> list[Buffer]:
    """Return the buffers of a chain of ops: each result is read by the next op."""
    return [Buffer(f"b{i}", "temp", n, i, min(i + 1, len(sizes))) for i, n in enumerate(sizes)]


def _parameters(sizes: Sequence[int]) -> int:
    layers = [flow.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
    return sum(p.numel() for layer in layers for p in layer.parameters())


def _product_bytes(m: int, k: int, n: int) -> int:
    return sum(Spec(s, F32).nbytes for s in ((m, k), (k, n), (m, n)))


def _pipeline(stages: int, batches: int, training: bool = True) -> tuple[int, list[int]]:
    found = sorted((i, back) for i in range(batches) for back in ((False, True) if training else (False,)))
    end, most, _ = clocked([_turns(i, stages, found) for i in range(stages)])
    return end, most


def _cheapest(m: int, k: int, n: int, devices: int) -> int:
    """Return the bytes of matmul's cheapest signature, for a x with S(1) and a w with B."""
    at = [[Layout((s,), tuple(range(devices)), (devices,))] for s in ("S0", "S1")]
    op = REGISTRY["matmul"]
    specs = [Spec((m, k), F32), Spec((k, n), F32)]
    return choose(op, specs, op.complete({}), at, tuple(range(devices))).bytes


def _kernels(ops: int) -> int:
    """Return the kernels that the plan of a chain of elementwise ops has."""
    def chain(x):
        for _ in range(ops):
            x = x.sin()
        return x
    graph = flow.nn.Graph.trace(chain)
    graph(flow.ones(8))
    return len(graph._compiled.program.plan.steps)


# ---- templates
def _ints(**ranges: tuple) -> Callable[[random.Random], dict[str, Any]]:
    """Return a function that draws a number of range(low, high, step) for each name."""
    return lambda rng: {name: rng.randrange(*r) for name, r in ranges.items()}


def _lifetimes(rng: random.Random) -> dict[str, Any]:
    draw = lambda first: (64 * rng.randrange(1, 9), first, first + rng.randrange(3))
    return {"sizes": [draw(rng.randrange(4)) for _ in range(4)]}


def _chained(rng: random.Random) -> dict[str, Any]:
    return {"sizes": [1000 * rng.randrange(1, 90) for _ in range(5)]}


def _images(rng: random.Random) -> dict[str, Any]:
    return {"sizes": [(rng.randrange(10, 60), rng.randrange(10, 60)) for _ in range(4)]}


def _widths(rng: random.Random) -> dict[str, Any]:
    return {"widths": [16 * rng.randrange(2, 40) for _ in range(4)]}


GRID = dict(rows=(64, 513, 64), cols=(64, 513, 64), k=(2, 5))
# For each template of questions.toml: a function that draws its numbers, and one that computes the answer.
TEMPLATES: dict[str, tuple[Callable, Callable]] = {
    "images": (_ints(n=(10, 500, 10), side=(16, 65, 8)),
        lambda n, side: Spec((n, 3, side, side), F32).nbytes),
    "offset": (_ints(a=(2, 9), b=(3, 9), c=(4, 9)),
        lambda a, b, c: 4 * sum(i * s for i, s in zip((1, 2, 3), row_major((a, b, c))))),
    "broadcast": (_ints(n=(50, 500, 10), m=(50, 500, 10)),
        lambda n, m: Spec(broadcast((n, 1), (m,)), F32).nbytes),
    "windows": (_ints(n=(50, 200), size=(3, 9), step=(2, 5)),
        lambda n, size, step: _windows(n, size, step).nbytes),
    "matmul": (_ints(m=(16, 300), k=(16, 300), n=(16, 300)),
        lambda m, k, n: _multiplications("matmul", (m, k), (k, n))),
    "attention": (_ints(b=(2, 9), h=(2, 9), t=(32, 257, 32), d=(32, 129, 32)),
        lambda b, h, t, d: (_multiplications("matmul", (b, h, t, d), (b, h, d, t))
                            + _multiplications("matmul", (b, h, t, t), (b, h, t, d)))),
    "backward": (_ints(n=(32, 257, 32), a=(64, 513, 64), b=(32, 257, 32), c=(10, 41, 10)),
        lambda n, a, b, c: (_multiplications("matmul", (a, n), (n, b))
                            + 2 * _multiplications("matmul", (n, b), (b, c)))),
    "convolution": (_ints(batch=(1, 9), channels=(3, 33), size=(16, 65), filters=(8, 65, 8), kernel=(3, 6)),
        _convolution),
    "parameters": (_widths, lambda widths: _parameters(widths)),
    "adam": (_widths, lambda widths: 4 * Spec((_parameters(widths),), F32).nbytes),
    "live": (_lifetimes, lambda sizes: lower_bound(_buffers(sizes), 6)),
    "unshared": (_lifetimes, lambda sizes: total(_buffers(sizes))),
    "arena": (_chained, lambda sizes: place(_chain(sizes))),
    "rounding": (_ints(n=(1, 5000)), lambda n: rounded(Spec((n,), F32).nbytes)),
    "launches": (_ints(ops=(2, 9), us=(2, 20)), lambda ops, us: (ops - _kernels(ops)) * us),
    "fusion": (_ints(ops=(2, 9), n=(100_000, 1_000_001, 100_000)),
        lambda ops, n: 2 * Spec((n,), F32).nbytes * (ops - _kernels(ops))),
    "halves": (_widths,
        lambda widths: sum(Spec((_parameters(widths),), d).nbytes for d in (flow.float16, F32))),
    "all-gather": (_ints(**GRID), lambda rows, cols, k: _boxing("S0", "B", (rows, cols), k)),
    "all-reduce": (_ints(**GRID), lambda rows, cols, k: _boxing("P", "B", (rows, cols), k)),
    "reduce-scatter": (_ints(**GRID), lambda rows, cols, k: _boxing("P", "S0", (rows, cols), k)),
    "all-to-all": (_ints(rows=(60, 601, 60), cols=(60, 601, 60), k=(2, 5)),
        lambda rows, cols, k: _boxing("S0", "S1", (rows, cols), k)),
    "elsewhere": (_ints(**GRID), lambda rows, cols, k: _boxing("B", "B", (rows, cols), k, k)),
    "largest part": (_ints(rows=(50, 500), cols=(50, 500), k=(3, 8)),
        lambda rows, cols, k: Spec((bounds(rows, k)[0][1], cols), F32).nbytes),
    "data parallel": (lambda rng: {**_widths(rng), "k": rng.randrange(2, 5)},
        lambda widths, k: sum(_boxing("P", "B", (b, a), k) + _boxing("P", "B", (b,), k)
                              for a, b in zip(widths, widths[1:]))),
    "cheapest": (_ints(m=(60, 301, 60), k=(60, 301, 60), n=(60, 301, 60), devices=(2, 5)), _cheapest),
    "pipeline": (_ints(stages=(2, 6), batches=(2, 9)),
        lambda stages, batches: _pipeline(stages, batches)[0]),
    "kept": (_ints(stages=(2, 6), batches=(6, 13)),
        lambda stages, batches: sum(_pipeline(stages, batches)[1])),
    "padding": (_images, lambda sizes: padding(sizes, [[0, 1], [2, 3]])),
    "bandwidth": (_ints(n=(1, 65), gbs=(10, 201, 10)),
        lambda n, gbs: 3 * Spec((n * 10**6,), F32).nbytes / (gbs * 10**3)),
    "roofline": (_ints(m=(64, 2049, 64), k=(64, 2049, 64), n=(64, 2049, 64), gflops=(200, 2001, 200),
                       gbs=(10, 101, 10)),
        lambda m, k, n, gflops, gbs: max(2 * _multiplications("matmul", (m, k), (k, n)) / (gflops * 10**3),
                                         _product_bytes(m, k, n) / (gbs * 10**3))),
}


def make_questions(seed: int, chapters: Sequence[int] = ()) -> list[Question]:
    """Return one question of each template, in the order of chapters."""
    out = []
    for name, t in tomllib.loads(TEXTS.read_text(encoding="utf-8")).items():
        if chapters and t["chapter"] not in chapters:
            continue
        draw, answer = TEMPLATES[name]
        given = draw(random.Random(f"{seed} {name}"))
        shown = {k: ", ".join(map(str, v)) if isinstance(v, list) else f"{v:,}" for k, v in given.items()}
        text = " ".join(t["text"].split()).format(**shown)
        out.append(Question(name, t["chapter"], given, text, answer(**given), t["unit"], t["way"]))
    return out


def format_answer(q: Question) -> str:
    """Return an answer with its unit; numbers that are not integers have one digit after the point."""
    number = f"{q.answer:,.1f}" if q.answer != int(q.answer) else f"{int(q.answer):,}"
    return f"{number} {q.unit}"


def pages(seed: int, questions: Sequence[Question]) -> tuple[str, str]:
    """Return the page of questions, and the page of answers."""
    title = f"# {len(questions)} questions (seed {seed})\n\n"
    asked = title + "\n".join(f"{i}. {q.text} [{q.unit}]" for i, q in enumerate(questions, 1)) + "\n"
    rows = [f"| {i} | {q.chapter} | {format_answer(q)} | {q.way} |" for i, q in enumerate(questions, 1)]
    head = title.replace("questions", "answers") + "| | chapter | answer | way |\n|---|---|---|---|\n"
    return asked, head + "\n".join(rows) + "\n"


@report_errors
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.teach.questions",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("chapter", nargs="?", default="all", help='"4", "1-4", "fast" or "all"')
    parser.add_argument("--out", type=Path, default=Path("build/questions"))
    options = parser.parse_args(arguments)
    chapters = sorted({h.chapter for h in select_holes(options.chapter)})
    questions = make_questions(options.seed, chapters)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, text in zip(("questions.md", "answers.md"), pages(options.seed, questions)):
        put(options.out / name, text)
    print(f"{len(questions)} questions: {options.out}/questions.md, answers.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
