"""Checks of the exercises for `make authors-check`.

The object of each hole must exist and have the stated length. The library's answer must pass, and the stub
must fail. No trivial edit of the stub may earn a point. Each wrong answer must fail by the law that its first
line names.
"""
from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from flowedu.errors import ArgumentError
from flowedu_course import alternatives, course, hunts, kernels, limits, source
from flowedu_course.blocks import slug
from flowedu_course.handout import NOTES, stub
from flowedu_course.judge import judged
from flowedu_course.runner import Runner
from flowedu_course.teach import frontier as steps
from flowedu_course.teach import stubs, texts, wrong
from flowedu_course.teach.bench import Bench
from flowedu_course.teach.edits import earned, edits
from flowedu_course.teach.stubs import library
from flowedu_course.teach.tree import export

FORBIDDEN = ("Traceback", "assert", "hypothesis", "draw(")
CASES = 200                                        # cases per law for the library's answer


def problems(hole, runner: Runner, cases: int = CASES) -> Iterator[str]:
    """Yield a line for each problem of a hole."""
    yield from check_texts(hole)
    if hole.is_hunt and not kernels.missing(hole):
        yield from _fault(hole)
    if hole.is_compiled:
        yield from _kernel(hole, runner)
        return
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder, "own.py")
        own.write_text(library(hole), encoding="utf-8")
        verdict = judged(hole, own, cases=cases)
        if verdict.state != "right" or verdict.stars < min(1, len(hole.stars)):
            yield f"the library's code is {verdict.state} with {verdict.stars} stars: {verdict.lines}"
        first = Path(folder, hole.file)
        first.write_text(stub(hole), encoding="utf-8")
        verdict = judged(hole, first)
        if (verdict.state, verdict.law) != ("open", ""):
            yield f"the stub is {verdict.state} with {verdict.stars} stars: {verdict.lines}"
    yield from _deaths(hole, runner)


def _kernel(hole, runner: Runner) -> Iterator[str]:
    """Check a kernel's answer and stub in separate processes, with time to compile."""
    if kernels.missing(hole):
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, text, wanted in (("own", kernels.answer(hole), "right"), ("first", stub(hole), "open")):
            file = Path(folder, name + hole.ending)
            file.write_text(text, encoding="utf-8")
            verdict = limits.judged(hole, file, course.HOME)
            if (verdict.state != wanted or wanted == "right"
                and verdict.stars < (verdict.of if hole.stars else 1)):
                what = "the library's file" if name == "own" else "the stub"
                yield f"{what} is {verdict.state} with {verdict.stars} stars: {verdict.lines}"
    yield from _deaths(hole, runner)


def check_texts(hole) -> Iterator[str]:
    """Yield the faults of an exercise's texts and numbers, without running an answer."""
    own = 0
    if hole.is_hunt:
        yield from _changes(hole)
    elif hole.kind == "kernel":
        own = sum(bool(t.strip())
                  for t in NOTES[hole.ending].sub("", "\n".join(kernels.answer_lines(hole))).splitlines())
    else:
        text = hole.source.read_text(encoding="utf-8")
        own = sum(source.body_lines(text, path) for path in hole.objects if source.is_function(text, path))
    if own and not 0.5 * own <= hole.lines <= 1.5 * own:
        yield f"lines = {hole.lines}, the library has {own}"
    if (hole.kind == "target") != bool(hole.half):
        yield f"half = {hole.half!r}: a target needs a rule for half of its points, other kinds have none"
    if len(hole.hints) != 3:
        yield f"{len(hole.hints)} hints; expected: 3"
    if len(wrong.files(hole)) < 2:
        yield f"{len(wrong.files(hole))} wrong answers; expected: at least 2"
    if len(hole.task.strip().splitlines()) > 8:
        yield "the task has more than 8 lines"
    if any(len(line) > texts.WIDEST for line in hole.task.splitlines()):
        yield f"the task has a line of more than {texts.WIDEST} characters"
    yield from texts.faults(hole)
    file, _, anchor = hole.why.partition("#")
    parts = re.split(r"^#+ (.*)$", (hole.folder / file).read_text("utf-8"), flags=re.M)
    sections = {slug(title): text for title, text in zip(parts[1::2], parts[2::2])}
    if anchor not in sections:
        yield f"why = {hole.why}: there is no such heading"
    elif f"{hole.short} (" not in sections[anchor].replace("\n> ", " "):
        yield f"why = {hole.why}: that section does not name {hole.short}"


def _changes(hole) -> Iterator[str]:
    """Check that the answer of a hunt changes few lines of its program."""
    changes = hunts.changed_lines(hole, kernels.answer(hole))
    if not 0 < len(changes) <= hole.lines:
        yield f"lines = {hole.lines}, the answer changes {len(changes)}"
    if hole.points:
        yield f"points = {hole.points}; expected: 0, because a hunt has no points"


def _fault(hole) -> Iterator[str]:
    """Check that the laws find the fault of a hunt."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, hole.file)
        file.write_text(hunts.with_extra_line(hole), encoding="utf-8")
        verdict = limits.judged(hole, file, course.HOME)
        if verdict.state != "wrong" or not verdict.law:
            yield f"the laws do not find the fault: {verdict.state} {verdict.lines}"


def _deaths(hole, runner: Runner) -> Iterator[str]:
    """Check that every wrong answer fails by its law, with a readable report."""
    with tempfile.TemporaryDirectory() as folder:
        for kept in wrong.files(hole):
            try:
                answer = wrong.read(hole, kept)
            except ArgumentError as error:
                yield str(error)
                continue
            file, name = answer.put(Path(folder)), kept.name
            verdict = limits.judged(hole, file, course.HOME, seconds=30)
            if verdict.state != "wrong" or verdict.law != answer.law:
                actual = f"{verdict.state}, law: {verdict.law or 'none'} {verdict.lines}"
                yield f"{name} should fail {answer.law}; got: {actual}"
            lines = runner.format_verdict(hole, verdict, file)
            text = "\n".join(lines)
            if len(lines) > 12 or any(len(t) > 100 for t in lines) or any(w in text for w in FORBIDDEN):
                yield (f"{name}: the report has more than 12 lines, a line of more than 100 characters, or "
                       f"one of the words {', '.join(FORBIDDEN)}:\n{text}")


def worthless(bench, hole) -> Iterator[str]:
    """Yield the trivial edits of a stub that earn points."""
    holes = course.holes()
    at = [h.id for h in holes].index(hole.id)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in edits(hole, holes[at - 1] if at else None).items():
            file = Path(folder, hole.file)
            file.write_text(text, encoding="utf-8")
            verdict = bench.judged(hole, file)
            if earned(hole, verdict):
                yield f"the stub with {name} earns {earned(hole, verdict):g} of {hole.points}"


def main() -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.authors", description=__doc__.splitlines()[0])
    parser.add_argument("exercises", nargs="*")
    parser.add_argument("--frontier", action="store_true",
                        help="also run the tests of each chapter while later exercises are open")
    options = parser.parse_args()
    bad = 0
    for c in course.chapters():
        if sum(h.points for h in c.holes) != 100:
            bad += 1
            print(f"chapter {c.number}: points add up to {sum(h.points for h in c.holes)}, not 100")
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as tree, Bench(Path(tree, "tree")) as bench:
        runner = Runner(course.HOME, Path(work))
        for hole in runner.holes:
            if not options.exercises or hole.id in options.exercises:
                lacks = kernels.set_up(hole, course.HOME) if hole.is_compiled else ""
                found = [*problems(hole, runner), *(worthless(bench, hole) if not lacks else ())]
                bad += len(found)
                died = ""
                if not found:
                    died = f" not judged: {lacks}" if lacks else " rejected"
                print(f"{hole.id:5s} {hole.title:50s} {len(wrong.files(hole))} wrong answers{died}",
                      flush=True)
                for p in found:
                    print(f"   {p}", flush=True)
    if not options.exercises:
        bad += whole(options.frontier)
    return 1 if bad else 0


def whole(frontier: bool) -> int:
    """Check all exercises together and return the number of problems.

    No line of an answer may be in a student's tree, and grading must accept the library's answers. With
    `frontier`, every chapter must work while later exercises are open. This takes minutes.
    """
    bad = alternatives.main([])
    with tempfile.TemporaryDirectory() as folder:
        last = max(c.number for c in course.chapters())
        for closed in (False, True):
            found = export(Path(folder, f"handout{closed}"), last, closed).found
            bad += len(found)
            for line in found:
                print(f"   a student's tree contains a line of an answer: {line}")
        with Bench(Path(folder, "bench")) as bench:
            for hole in (h for h in course.holes() if not h.is_separate):
                file = Path(folder, hole.file)
                file.write_text(stubs.answer_text(hole), encoding="utf-8")
                verdict = bench.judged(hole, file)
                bad += verdict.state != "right"
                how = "in one process with its judge" if hole.together else "in a separate process"
                said = "" if verdict.state == "right" else f": {verdict.state} {verdict.lines}"
                print(f"{hole.id:5s} graded {how}{said}", flush=True)
    return bad + (steps.main([]) if frontier else 0)


if __name__ == "__main__":
    sys.exit(main())
