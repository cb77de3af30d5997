"""Equal and nearly equal submissions of a class: `make similar DIR=submissions CH=4 [ALIKE=0.9]`.

    python -m flowedu_course.teach.similar submissions 4 --alike 0.9 --out build/grade/similar.csv

Two answers are compared by their code without names, comments, and docstrings: by the short sequences (WIDE
neighbouring tokens) that they share. Answers that are equal to the library's or to the initial code are left
out, and so are pairs of short answers, unless two files have the same bytes. A pair is a reason to ask the
students, and no proof.
"""
from __future__ import annotations

import argparse
import ast
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from flowedu.errors import ArgumentError
from flowedu_course.handout import NOTES, stub
from flowedu_course.teach import stubs, submission
from flowedu_course.teach.commands import report_errors
from flowedu_course.teach.gradebook import write_rows

WIDE = 5                                           # tokens in a sequence
NEARLY, RENAMED = "nearly the same code", "the same code with other names or comments"
SHORT = 40                                         # sequences; code with fewer is too common to compare
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|[^\s\w]")
# Words of C and Cython that stay; all other words of a kernel are names.
WORDS = {*"for while if else elif return break continue in range and or not cdef with gil nogil int float "
         "double const void static __global__ __shared__ __syncthreads".split()}


class Answer(NamedTuple):
    """A submission's file: its student, inode, bytes, and the sequences of its code."""

    student: str
    place: tuple[int, int]
    data: bytes
    code: Counter


class Pair(NamedTuple):
    """Two answers to an exercise that are equal or nearly equal."""

    exercise: str
    first: str
    second: str
    alike: float
    reason: str


def tokens(hole, text: str) -> list[str]:
    """Return the code of an answer without names, comments, docstrings, and layout."""
    try:
        tree = None if hole.ending != ".py" else ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is not None:
        return list(_visit(tree))
    plain = NOTES.get(hole.ending, NOTES[".pyx"]).sub(" ", text)
    return [t if t in WORDS or not (t[0].isalpha() or t[0] == "_") else "name" for t in TOKEN.findall(plain)]


def _visit(node: ast.AST) -> Iterator[str]:
    """Yield the types of a tree's nodes in order, with constants and attributes but without names."""
    stack: list[ast.AST | str] = [node]
    while stack:
        here = stack.pop()
        if isinstance(here, str):
            yield here
            continue
        if isinstance(here, ast.Expr) and isinstance(here.value, ast.Constant):        # a docstring
            continue
        if isinstance(here, ast.Import | ast.ImportFrom | ast.expr_context):
            continue
        yield type(here).__name__
        if isinstance(here, ast.Constant):
            yield repr(here.value)[:40]
        if isinstance(here, ast.Attribute):
            yield here.attr
        stack += [f"/{type(here).__name__}"] if isinstance(here, ast.stmt) else []
        stack += reversed(list(ast.iter_child_nodes(here)))


def sequences(hole, text: str) -> Counter:
    code = tokens(hole, text)
    return Counter(tuple(code[i:i + WIDE]) for i in range(max(len(code) - WIDE + 1, 1)))


def alike(a: Counter, b: Counter) -> float:
    """Return the share of sequences that two answers have in common, from 0 to 1."""
    total = a.total() + b.total()
    return 2 * (a & b).total() / total if total else 1.0


def read(folder: Path, hole) -> list[Answer]:
    """Return the answers of a class to an exercise, without the handed-out ones."""
    own = stubs.library(hole)
    known = [sequences(hole, text) for text in (own, stub(hole))]
    answers = []
    for student in submission.students(folder):
        try:
            place, data = submission.read_file(student, hole)
        except (OSError, ValueError):
            continue
        code = sequences(hole, data.decode(errors="replace"))
        if code not in known:
            answers.append(Answer(submission.label(student.name), place, data, code))
    return answers


def pairs(folder: Path, holes: Iterable, least: float = 0.9) -> list[Pair]:
    """Return the pairs of answers that have at least this share in common, most alike first."""
    found = []
    for hole in (h for h in holes if not h.is_hunt):       # right answers of a hunt are nearly equal
        for a, b in combinations(read(folder, hole), 2):
            long = min(a.code.total(), b.code.total()) >= SHORT
            if a.place == b.place or a.data == b.data:
                share, reason = 1.0, "one file (a hard link)" if a.place == b.place else "the same text"
            else:
                # A quick upper bound first: the smaller answer may be a part of the larger one.
                sizes = sorted((a.code.total(), b.code.total()))
                share = alike(a.code, b.code) if long and 2 * sizes[0] / sum(sizes) >= least else 0.0
                reason = NEARLY if share < 1 else RENAMED
            if share >= least:
                found.append(Pair(hole.id, a.student, b.student, share, reason))
    return sorted(found, key=lambda p: -p.alike)


def write(file: Path, found: Iterable[Pair]) -> None:
    """Write similar.csv."""
    write_rows(file, ["exercise", "first", "second", "alike", "reason"],
               [{**p._asdict(), "alike": f"{p.alike:.2f}"} for p in found])


@report_errors
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.teach.similar",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a folder with one submission per student")
    parser.add_argument("chapter", nargs="?", default="all", help='"4", "1-4", "fast" or "all"')
    parser.add_argument("--alike", type=float, default=0.9, help="the least share in common, 0 to 1")
    parser.add_argument("--out", type=Path, default=Path("build/grade/similar.csv"))
    options = parser.parse_args(arguments)
    if not 0 < options.alike <= 1:
        raise ArgumentError("ALIKE is out of range", expected="more than 0, and at most 1",
                            got=str(options.alike), fix="ALIKE=0.9")
    if not options.folder.is_dir():
        raise ArgumentError(f"there is no folder {options.folder}", got=os.fspath(options.folder),
                            fix="DIR=submissions")
    found = pairs(options.folder, submission.select_holes(options.chapter), options.alike)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write(options.out, found)
    for p in found:
        print(f"{p.exercise:5s} {p.alike:4.0%}  {p.first}  {p.second}  {p.reason}")
    print(f"{len(found)} pair{'s' * (len(found) != 1)}: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
