"""Mutation test of the exercises: right answers with one changed token, which the laws must reject.

    python -m flowedu_course.teach.mutants [4.2 4.3 ...] [--sample N --choice TEXT] [--seed 0] [--jobs 2]

Each mutant is judged like an answer, in a forked process. A mutant survives if the verdict is "right", with
as many stars as the answer that it changes. chapters/*/mutants.toml lists survivors whose results are those
of a right answer, with reasons. The exit status is 1 if more than UNEXPLAINED of all mutants survive without
a reason. Kernels and hunts are mutated only if they are named, because a mutant of a kernel is compiled,
which takes several seconds.
"""
from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from flowedu_course import alternatives, course, judge, kernels, laws, limits
from flowedu_course.limits import limit_process
from flowedu_course.teach.mutations import Mutant, make_mutants
from flowedu_course.teach.stubs import library
from flowedu_course.teach.text_mutations import make_text_mutants

SECONDS = 10.0                                     # of processor time; a mutant may loop forever
COLUMNS = "mutants", "killed", "fewer stars", "explained", "unexplained"
# Share of all mutants that may survive without an explanation, so that one new survivor of 3,000 does not
# fail the command before a law or a row has been written for it. In a run of fewer than 100 mutants, each
# survivor counts.
UNEXPLAINED = 0.01


def all_mutants(ids: Iterable[str] = ()) -> Iterator[Mutant]:
    """Yield the mutants of the library's answers and of the alternatives in chapters/*/right.

    ids: exercises (default: all except kernels and hunts).
    """
    ids, others = set(ids), alternatives.files()
    for hole in course.holes():
        if hole.id not in ids if ids else hole.is_separate:
            continue
        make = make_text_mutants if hole.is_separate else make_mutants
        for text in (library(hole), *(f.read_text(encoding="utf-8") for f in others[hole.id])):
            yield from make(hole, text)


# ---- verdicts
def run_mutants(mutants: Iterable[Mutant], jobs: int, seed: int = 0) -> Iterator[tuple[Mutant, str]]:
    """Yield (mutant, "right", "worse", "wrong", or "ended": the process died), `jobs` processes at a time.

    "worse": the mutant obeys the laws, but has fewer stars than the answer that it changes.
    """
    waiting = iter(mutants)
    running: dict[int, tuple[Mutant, int, float]] = {}      # pipe -> mutant, process, deadline
    with tempfile.TemporaryDirectory() as folder:
        while True:
            while len(running) < jobs and (mutant := next(waiting, None)):
                pipe, pid = _fork(mutant, Path(folder), seed)
                patience = 4 * (kernels.SECONDS if mutant.hole.is_compiled else SECONDS)
                running[pipe] = mutant, pid, time.monotonic() + patience
            if not running:
                return
            ready = select.select(list(running), [], [], 1.0)[0]
            for pipe, (mutant, pid, deadline) in list(running.items()):
                if pipe not in ready and time.monotonic() < deadline:
                    continue
                result = os.read(pipe, 16).decode() if pipe in ready else ""
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                os.close(pipe)
                del running[pipe]
                yield mutant, result or "ended"


def _fork(mutant: Mutant, folder: Path, seed: int) -> tuple[int, int]:
    """Judge a mutant in a new process. Return the pipe that gets the result, and the process."""
    hole = mutant.hole
    laws.law(hole.laws[0])                         # imported here, so that not every process imports it
    stars = count_stars(hole, mutant.answer, seed) if hole.stars and mutant.answer else 1
    out, into = os.pipe()
    pid = os.fork()
    if pid:
        os.close(into)
        return out, pid
    try:
        if not hole.is_compiled:                   # limits.judged limits the process of a kernel
            limit_process(SECONDS)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        file = folder / str(os.getpid()) / hole.file
        file.parent.mkdir()
        file.write_text(mutant.text, encoding="utf-8")
        verdict = (limits.judged(hole, file, course.HOME, seed) if hole.is_compiled
                   else judge.judged(hole, file, seed))
        os.write(into, classify(verdict, stars).encode())
    finally:
        os._exit(0)


@functools.cache
def count_stars(hole: Any, answer: str, seed: int) -> int:
    """Return the number of stars of an unchanged answer."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / hole.file
        file.write_text(answer, encoding="utf-8")
        return limits.judged(hole, file, course.HOME, seed, 60).stars


def classify(verdict: laws.Verdict, stars: int) -> str:
    """Return "right", "worse" (it obeys the laws, but has fewer than `stars` stars), or "wrong"."""
    if verdict.state == "right":
        return "right" if verdict.stars >= stars else "worse"
    return "worse" if verdict.state == "open" and verdict.extra else "wrong"


@functools.cache
def equal_rows(folder: Path) -> list[dict[str, str]]:
    """Return the rows of a chapter's mutants.toml.

    A row explains why the result of a mutant does not change. Its keys are "exercise", "change", and
    "reason", and perhaps "statement", if the same change in another statement is wrong.
    """
    file = folder / "mutants.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["equal"] if file.exists() else []


def explains(row: dict[str, str], mutant: Mutant) -> bool:
    """Return True if a row of mutants.toml is about this mutant."""
    return (row["exercise"], row["change"]) == (mutant.hole.id, mutant.change) and (
        row.get("statement", mutant.statement) == mutant.statement)


def is_explained(mutant: Mutant) -> bool:
    return any(explains(row, mutant) for row in equal_rows(mutant.hole.folder))


def tally(results: Iterable[tuple[Mutant, str]]) -> dict[str, Counter]:
    """Return {exercise: numbers of its mutants by COLUMNS}."""
    counts: dict[str, Counter] = {}
    for mutant, result in results:
        kind = {"wrong": "killed", "ended": "killed", "worse": "fewer stars"}.get(result)
        kind = kind or ("explained" if is_explained(mutant) else "unexplained")
        counts.setdefault(mutant.hole.id, Counter()).update(("mutants", kind))
    return counts


def table_lines(counts: dict[str, Counter]) -> list[str]:
    """Return the lines of a table with one row per exercise, and their sum."""
    rows = {**counts, "all": sum(counts.values(), Counter())}
    return ["  ".join(["exercise", *COLUMNS]),
            *("  ".join([f"{name:8s}", *(f"{row[c]:{len(c)}d}" for c in COLUMNS)])
              for name, row in rows.items())]


def unused_rows(results: list[tuple[Mutant, str]]) -> list[dict[str, str]]:
    """Return the rows of mutants.toml that explain no survivor. results: all mutants of the exercises."""
    holes = {m.hole.id: m.hole for m, _ in results}.values()
    rows = [r for hole in holes for r in equal_rows(hole.folder) if r["exercise"] == hole.id]
    return [r for r in rows if not any(result == "right" and explains(r, m) for m, result in results)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.teach.mutants",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("exercises", nargs="*")
    parser.add_argument("--sample", type=int, default=0, help="judge only N mutants")
    parser.add_argument("--choice", default="", help="a text that determines the sample")
    parser.add_argument("--seed", type=int, default=0, help="seed of the cases that laws draw")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write all results to this file")
    options = parser.parse_args(arguments)
    for hole in map(course.find, options.exercises):
        if tool := kernels.missing(hole):
            parser.error(f"{hole.id} cannot be judged: {tool}")
    mutants = list(all_mutants(options.exercises))
    if options.sample:
        mutants = random.Random(options.choice).sample(mutants, min(options.sample, len(mutants)))
    results: list[tuple[Mutant, str]] = []
    for mutant, result in run_mutants(mutants, options.jobs, options.seed):
        results.append((mutant, result))
        if result == "right" and not is_explained(mutant):
            print(f"survives: {mutant}", flush=True)
            if mutant.statement not in mutant.change:
                print(f"    statement: {mutant.statement}", flush=True)
    for row in [] if options.sample else unused_rows(results):
        print(f"no survivor, remove the row: {row['exercise']}: {row['change']}")
    counts = tally(results)
    print(*table_lines(counts), sep="\n")
    if options.json:
        rows = [{"exercise": m.hole.id, "operator": m.operator, "line": m.line, "change": m.change,
                 "result": r} for m, r in results]
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return int(sum(row["unexplained"] for row in counts.values()) > UNEXPLAINED * len(results))


if __name__ == "__main__":
    sys.exit(main())
