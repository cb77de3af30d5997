"""Export the library's answers of chapters 1 to UPTO: `make solutions-tree UPTO=3 OUT=../solutions`.

The answers are work files, in a folder to hand out when those chapters are over. A student copies it to
solutions/, and `make solution EX=2.3` shows them.

    python -m flowedu_course.teach.solutions 3 ../solutions --only 2.3 3
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from flowedu.errors import ArgumentError
from flowedu_course import course
from flowedu_course.teach import stubs, tree
from flowedu_course.teach.commands import report_errors


def answer(hole) -> str:
    """Return a right work file; for a kernel, the library's whole file."""
    title = "" if hole.is_separate else f'"""{hole.title}"""\n\n\n'
    return title + stubs.library(hole)


def export(out: Path, holes: Iterable) -> list[str]:
    """Write the answers of these holes and return their file names. Raises if `out` is not empty."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ArgumentError(f"{out} is not empty", expected="a folder that does not exist yet", got=str(out),
                            fix="OUT=../other")
    out.mkdir(parents=True, exist_ok=True)
    names = []
    for hole in holes:
        (out / hole.file).write_text(answer(hole), encoding="utf-8")
        names.append(hole.file)
    return names


@report_errors
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.teach.solutions",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("upto", type=int, help="the last chapter whose answers are handed out")
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="+", metavar="2.3",
                        help="only the answers to these exercises or chapters")
    options = parser.parse_args(arguments)
    upto = tree.check_chapter(options.upto)
    names = export(options.out, tree.select_holes(options.only, upto) if options.only
                   else tree.open_holes(upto, False))
    print(f"{options.out}: {len(names)} answers of chapters 1 to {upto}; copied to a student's "
          f"tree as {course.SOLUTIONS}/, they are shown by `make solution EX=1.1`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
