"""Leaderboard of a class, made from the results of `make grade-all`: `make leaderboard DIR=build/grade`.

    python -m flowedu_course.teach.leaderboard build/grade              leaderboard.txt, leaderboard.html

Students are compared by stars, points, and measures of their answers (bytes of an arena, nodes, kernels,
messages), but not by times, which depend on the machine. Equal students share a place. Students without
results come last.
"""
from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from flowedu.errors import ArgumentError
from flowedu_course import course, rules
from flowedu_course.teach.commands import report_errors
from flowedu_course.teach.report import STYLE, _clean, put

NAME = 40                                          # letters shown of a name
LARGEST = 16 << 20


class Entry(NamedTuple):
    """A student's total stars and points, number of right exercises, and results.

    The results are {hole: (stars, {measure: number})} of the right exercises, or None without results.
    """

    name: str
    stars: int = 0
    points: float = 0.0
    right: int = 0
    found: dict[str, tuple[int, dict[str, float]]] | None = None


def measures(hole) -> dict[str, bool]:
    """Return {measure of its stars: True if less is better}, in the order of its rules.

    Rules about time are left out, and so are measures that only record that an answer is right.
    """
    out = {}
    for rule in hole.stars:
        if not rules.is_timed(rule):               # see kernels.timed
            for name, less in rules.goals(rule):
                out.setdefault(name, less)
    return out


def entry(folder: Path, holes: Sequence) -> Entry:
    """Read the results of a student, without values that are not numbers."""
    name = _clean(folder.name)[:NAME]
    file = folder / "results.json"
    try:
        if file.stat().st_size > LARGEST:
            return Entry(name)
        tests = json.loads(file.read_text(encoding="utf-8"))["tests"]
        rows = {t["name"]: t for t in tests}
        if not any(h.short in rows for h in holes):
            return Entry(name)
        found, points = {}, 0.0
        for hole in holes:
            row = rows.get(hole.short)
            if row is None:
                continue
            points += _number(row["score"]) or 0.0
            if "state:right" in row["tags"]:
                stars = next((int(t[6:]) for t in row["tags"] if t.startswith("stars:")), 0)
                given = {m: n for m in measures(hole) if (n := _number(row["extra_data"].get(m))) is not None}
                found[hole.id] = (min(stars, len(hole.stars)), given)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Entry(name)
    return Entry(name, sum(stars for stars, _ in found.values()), round(points, 2), len(found), found)


def _number(value) -> float | None:
    return value if type(value) in (int, float) and math.isfinite(value) else None


def entries(folder: Path, holes: Sequence) -> list[Entry]:
    """Return the entries of a folder with a subfolder per student. Raises ArgumentError if it has none."""
    if not folder.is_dir() or not any(p.is_dir() for p in folder.iterdir()):
        raise ArgumentError(f"{folder} has no grades of a class",
                            expected="the folder that `make grade-all` wrote",
                            got=str(folder), fix="DIR=build/grade")
    return [entry(p, holes) for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")]


def placed(rows: Iterable[tuple[str, tuple]]) -> list[tuple[int, str, tuple]]:
    """Sort (name, key) by key, then name, and return (place, name, key). Equal keys share a place."""
    out: list[tuple[int, str, tuple]] = []
    for n, (name, key) in enumerate(sorted(rows, key=lambda r: (r[1], r[0].casefold(), r[0])), 1):
        out.append((out[-1][0] if out and out[-1][2] == key else n, name, key))
    return out


class Table(NamedTuple):
    """A table of texts with a title and column heads."""

    title: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


def tables(folder: Path, home: Path = course.HOME) -> list[Table]:
    """Return the table of all students, then one table per measured exercise."""
    holes = [h for h in course.holes(home) if not h.is_hunt]
    all_of = entries(folder, holes)
    by = {e.name: e for e in all_of}
    if len(by) < len(all_of):                      # names made equal by cutting or cleaning
        all_of = [e._replace(name=f"{e.name[:NAME - 4]} {n}")
                  for n, e in enumerate(sorted(all_of, key=str), 1)]
        by = {e.name: e for e in all_of}
    there = [e for e in all_of if e.found is not None]
    rows = [(str(place), name, str(by[name].stars), f"{by[name].points:g}", str(by[name].right))
            for place, name, _ in placed((e.name, (-e.stars, -e.points)) for e in there)]
    absent = sorted((e.name for e in all_of if e.found is None), key=lambda n: (n.casefold(), n))
    rows += [("", name, "", "", "no results") for name in absent]
    out = [Table(f"{len(all_of)} student{'s' if len(all_of) != 1 else ''}",
                 ("", "name", "stars", "points", "right"), rows)]
    for hole in holes:
        less = measures(hole)
        found = {e.name: e.found[hole.id] for e in there
                 if hole.id in e.found and less.keys() <= e.found[hole.id][1].keys()}
        if less and found:
            key = lambda f, less=less: (-f[0], *(f[1][m] if down else -f[1][m] for m, down in less.items()))
            out.append(Table(hole.short, ("", "name", "stars", *(m.replace("_", " ") for m in less)),
                             [(str(place), name, "*" * found[name][0], *(f"{found[name][1][m]:,.10g}"
                                                                         for m in less))
                              for place, name, _ in placed((n, key(f)) for n, f in found.items())]))
    return out


def text(some: Sequence[Table]) -> str:
    out = []
    for t in some:
        wide = [max(len(row[i]) for row in (t.heads, *t.rows)) for i in range(len(t.heads))]
        line = lambda row, wide=wide: "  ".join(
            f"{c:{'<' if i in (1, 2) and not c.isdigit() else '>'}{w}}"
            for i, (c, w) in enumerate(zip(row, wide))).rstrip()
        out += [t.title, line(t.heads), *map(line, t.rows), ""]
    return "\n".join(out)


def page(some: Sequence[Table]) -> str:
    cells = lambda row, tag: "".join(f'<{tag}{"" if i == 1 else " class=n"}>{escape(c)}</{tag}>'
                                     for i, c in enumerate(row))
    parts = "\n".join(f"<h2>{escape(t.title)}</h2>\n<table><tr>{cells(t.heads, 'th')}</tr>\n" +
                      "\n".join(f"<tr>{cells(row, 'td')}</tr>" for row in t.rows) + "</table>" for t in some)
    return (f'<!doctype html>\n<html lang="en"><head><meta '
            f'charset="utf-8"><title>leaderboard</title><style>{STYLE}</style>'
            f"</head>\n<body><h1>Leaderboard</h1>\n{parts}\n</body></html>\n")


@report_errors
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.teach.leaderboard",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/grade"),
                        help="the folder that `make grade-all` wrote")
    options = parser.parse_args(arguments)
    some = tables(options.folder)
    put(options.folder / "leaderboard.txt", text(some))
    put(options.folder / "leaderboard.html", page(some))
    print(text(some), end="")
    print(f"{options.folder}/leaderboard.txt, leaderboard.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
