"""Tables of a class: grades.csv, and the files that Canvas and Moodle import (canvas.csv, moodle.csv).

Canvas needs the columns Student, ID, SIS User ID, SIS Login ID, and Section, and a second row with the
possible points. It finds a student by one of the ids. Moodle asks which columns are the user, the grade, and
the feedback. Both files have one column of points per chapter. Without a roster, the folder's name is the
login.
"""
from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from flowedu_course.teach import submission
from flowedu_course.teach.report import REMARK, put

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("Username", "ID number", "Email address")
LOGIN = {"Student", "SIS Login ID", "Username"}    # columns that have the folder's name without a roster


def row(out: Path, name: str) -> dict:
    """Return the row of a student in grades.csv, read from results.json."""
    said = json.loads((out / "results.json").read_text(encoding="utf-8"))
    tests = said["tests"]
    judged = lambda t: "state:unjudged" not in t["tags"]
    remark = lambda t: t.get("extra_data", {}).get("remark", "")
    why = {t["output"].partition(f"\n\n{REMARK}")[0].splitlines()[-1].strip() for t in tests if not judged(t)}
    remarks = [f"{name}: {' '.join(remark(t).split())}" for name, t in
               [("all", said), *((t["name"].split()[0], t) for t in tests)] if remark(t)]
    return {"name": submission.label(name), "score": said["score"],
            "of": sum(t["max_score"] for t in tests),
            "must": " ".join(t["name"].split()[0] for t in tests if "missing" in t["tags"]),
            **{t["name"]: t["score"] if judged(t) else "unjudged" for t in tests},
            "unjudged": "; ".join(sorted(why)),
            "together": " ".join(t["name"].split()[0] for t in tests
                                 if "together" in t["tags"] and t["score"]),
            "seconds": round(sum(t["extra_data"].get("seconds", 0) for t in tests), 1),
            "remarks": "; ".join(remarks)}


def cell(v):
    """Mark texts that a spreadsheet takes for formulas."""
    return f"'{v}" if isinstance(v, str) and v.strip()[:1] in tuple("=+-@＝＋－＠") else v


def write_rows(file: Path, names: Sequence[str], rows: Iterable[dict]) -> None:
    """Write a CSV file with these columns."""
    text = io.StringIO()
    table = csv.DictWriter(text, names, restval="", extrasaction="ignore")
    table.writeheader()
    table.writerows({k: cell(v) for k, v in r.items()} for r in rows)
    put(file, text.getvalue())


def write_table(file: Path, table: Iterable[dict], holes: Iterable) -> None:
    """Write grades.csv. The column must has the must exercises that are not right."""
    write_rows(file, ["name", "score", "of", "must", *(h.short for h in holes), "seconds", "unjudged",
                      "together", "remarks"], table)


def write_imports(folder: Path, table: Sequence[dict], holes: Sequence,
                  roster: dict[str, dict[str, str]]) -> None:
    """Write canvas.csv and moodle.csv. A chapter with an unjudged exercise has an empty cell."""
    chapters = {n: [h for h in holes if h.chapter == n] for n in sorted({h.chapter for h in holes})}
    titles = {n: f"flowedu chapter {n}" for n in chapters}
    canvas = [{"Student": "    Points Possible", **{titles[n]: sum(h.points for h in some)
                                                   for n, some in chapters.items()}}]
    moodle = []
    for r in table:
        if "score" not in r:                       # a link or a hidden folder, which is not graded
            continue
        known = roster.get(r["name"], {})
        who = {c: known.get(c) or (r["name"] if c in LOGIN else "") for c in (*CANVAS, *MOODLE)}
        sums = {n: _sum([r[h.short] for h in some]) for n, some in chapters.items()}
        canvas.append({**who, **{titles[n]: s for n, s in sums.items()}})
        moodle.append({**who, **{f"{titles[n]} (Real)": s for n, s in sums.items()},
                       **{f"{titles[n]} (Feedback)": _feedback(r, some) for n, some in chapters.items()}})
    write_rows(folder / "canvas.csv", [*CANVAS, *titles.values()], canvas)
    write_rows(folder / "moodle.csv", [*MOODLE, *(f"{t} ({what})" for t in titles.values()
                                              for what in ("Real", "Feedback"))], moodle)


def _sum(points: Sequence) -> float | str:
    return "" if "unjudged" in points else round(sum(points), 2)


def _feedback(r: dict, some: Sequence) -> str:
    """Return the exercises of a chapter without points, and the remarks on the chapter."""
    ids = {h.id for h in some}
    missing = [i for i in r["must"].split() if i in ids]
    without = [h.id for h in some if r[h.short] == 0]
    remarks = [t for t in r["remarks"].split("; ") if t.partition(":")[0] in ids | {"all"}]
    return "; ".join([*(["must exercises that are missing: " + " ".join(missing)] if missing else []),
                      *(["no points: " + " ".join(without)] if without else []), *remarks])
