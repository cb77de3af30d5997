"""Files of an instructor: weights, remarks, and a roster. `make weights OUT=weights.csv [BY=time]`.

    python -m flowedu_course.teach.classfile all --by time --out weights.csv

A table of weights has the columns exercise, points, and must; title and minutes are only for the reader. Its
last row `total` has the sum of the points, which is checked. Remarks are a CSV file with the columns student,
exercise, and remark, or a folder with a file STUDENT/4.3.txt for each remark. An empty exercise, or the file
STUDENT/all.txt, is a remark on the whole submission. A roster has a column folder and columns of Canvas or
Moodle, such as "SIS Login ID" or "Email address".
"""
from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from flowedu.errors import ArgumentError
from flowedu_course.teach.commands import report_errors
from flowedu_course.teach.gradebook import write_rows
from flowedu_course.teach.report import Mark
from flowedu_course.teach.submission import select_holes

YES, NO = ("yes", "y", "1", "true", "must"), ("", "no", "n", "0", "false")
ALL = "all"                                        # name of a remark on the whole submission


class ClassFile(NamedTuple):
    """The instructor's settings: points and must exercises by id, remarks, and a roster."""

    points: dict[str, float] = {}
    must: frozenset[str] = frozenset()
    remarks: dict[str, dict[str, str]] = {}        # {student: {id of an exercise, or all: text}}
    roster: dict[str, dict[str, str]] = {}         # {student: {column: text}}

    def weigh(self, holes: Iterable) -> list:
        """Return the exercises with the points of the table."""
        return [replace(h, points=self.points.get(h.id, h.points)) for h in holes]

    def apply(self, marks: Iterable[Mark], student: str) -> list[Mark]:
        """Return a student's marks with weights and remarks."""
        own = self.remarks.get(student, {})
        return [m._replace(hole=self.weigh([m.hole])[0], must=m.hole.id in self.must,
                           remark=own.get(m.hole.id, "")) for m in marks]

    def general(self, student: str) -> str:
        return self.remarks.get(student, {}).get(ALL, "")


def _fail(file: Path, problem: str, expected: str, got: object) -> ArgumentError:
    return ArgumentError(f"{file}: {problem}", expected=expected, got=str(got))


def _rows(file: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Return the rows of a CSV file that has these columns; empty rows are left out."""
    with file.open(newline="", encoding="utf-8-sig") as f:
        table = csv.DictReader(f)
        if missing := [c for c in columns if c not in (table.fieldnames or ())]:
            raise _fail(file, "a column is missing", ", ".join(columns), f"no {', '.join(missing)}")
        rows = [{k: (v or "").strip() for k, v in row.items() if k is not None} for row in table]
    return [row for row in rows if any(row.values())]


# ---- weights
def by_time(holes: Sequence) -> dict[str, float]:
    """Share the points of exercises in proportion to their minutes, as integers with the same sum."""
    total, minutes = sum(h.points for h in holes), sum(h.minutes for h in holes if not h.is_hunt)
    exact = {h.id: 0 if h.is_hunt else total * h.minutes / minutes for h in holes}
    points = {id: math.floor(p) for id, p in exact.items()}
    # The largest remainders get the points that are left.
    for id in sorted(exact, key=lambda id: points[id] - exact[id])[:round(total - sum(points.values()))]:
        points[id] += 1
    return points


def read_weights(file: Path, holes: Sequence,
                 known: Iterable[str]) -> tuple[dict[str, float], frozenset[str]]:
    """Return (points, must exercises) of a table. Raises ArgumentError for a wrong id, number, or sum."""
    points: dict[str, float] = {}
    must, known, total = set(), {*known}, None
    for row in _rows(file, ("exercise", "points")):
        id = row["exercise"]
        try:
            number = float(row["points"])
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            raise _fail(file, f"the points of {id} are not a number", "a number of 0 or more", row["points"])
        number = int(number) if number == int(number) else number
        if id == "total":
            total = number
            continue
        if id not in known or id in points:
            problem = "there are two rows for" if id in points else "there is no exercise"
            raise _fail(file, f"{problem} {id}", "one row for each exercise", id)
        if row.get("must", "").lower() not in YES + NO:
            raise _fail(file, f"must of {id} is neither yes nor no", "yes, or an empty cell", row["must"])
        points[id] = number
        must |= {id} if row.get("must", "").lower() in YES else set()
    if missing := [h.id for h in holes if h.id not in points]:
        raise _fail(file, "an exercise is missing", "a row for each graded exercise",
                    f"no {', '.join(missing)}")
    if total is None or not math.isclose(total, sum(points.values())):
        raise _fail(file, "the last row has another sum", f"total,{sum(points.values()):g}",
                    "no row total" if total is None else f"total,{total:g}")
    return points, frozenset(must)


def write_weights(file: Path, holes: Sequence, points: dict[str, float]) -> None:
    """Write a table of weights."""
    rows = [{"exercise": h.id, "title": h.title, "minutes": h.minutes, "points": points.get(h.id, h.points)}
            for h in holes]
    total = {name: sum(row[name] for row in rows) for name in ("minutes", "points")}
    write_rows(file, ["exercise", "title", "minutes", "points", "must"],
               [*rows, {"exercise": "total", **total}])


# ---- remarks and roster
def read_remarks(source: Path, students: Iterable[str], holes: Iterable) -> dict[str, dict[str, str]]:
    """Return {student: {exercise: remark}}. Raises ArgumentError for an unknown student or exercise."""
    if source.is_dir():
        found = [(f.parent.name, f.stem, f.read_text(encoding="utf-8").strip())
                 for f in sorted(source.glob("*/*.*")) if f.suffix in (".txt", ".md")]
    else:
        found = [(r["student"], r["exercise"], r["remark"])
                 for r in _rows(source, ("student", "exercise", "remark"))]
    ids, names, remarks = {h.id for h in holes} | {ALL}, {*students}, {}
    for student, id, text in found:
        id = id or ALL
        if student not in names:
            raise _fail(source, f"there is no submission of {student}", "the name of a folder", student)
        if id not in ids:
            raise _fail(source, f"there is no exercise {id}", f"a graded exercise, or {ALL}", id)
        own = remarks.setdefault(student, {})
        own[id] = f"{own[id]}\n{text}" if id in own else text
    return remarks


def read_roster(file: Path) -> dict[str, dict[str, str]]:
    """Return {folder: {column: text}}."""
    return {row["folder"]: row for row in _rows(file, ("folder",))}


@report_errors
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.teach.classfile",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("chapter", nargs="?", default="all", help='"4", "1-4", "fast" or "all"')
    parser.add_argument("--by", choices=("points", "time"), default="points")
    parser.add_argument("--out", type=Path, default=Path("weights.csv"))
    options = parser.parse_args(arguments)
    holes = select_holes(options.chapter)
    if options.out.exists():
        raise ArgumentError(f"{options.out} exists", expected="a new file", got=str(options.out),
                            fix="OUT=another.csv")
    write_weights(options.out, holes, by_time(holes) if options.by == "time" else {})
    print(f"{len(holes)} exercises: {options.out}; edit it, then `make grade-all WEIGHTS={options.out}`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
