"""A class of six submissions, graded by real workers (class_of_six.py).

The copier looks for the library's code, the liar fakes what is measured, and nasty attacks the machine. Only
`right` and `half` get points. The tables for Canvas and Moodle have the same points.
"""
import csv
import json
from pathlib import Path

import pytest
from class_of_six import STUDENTS, write_class

from flowedu_course.teach import grade, submission
from flowedu_course.teach.classfile import ClassFile


def _grade_class(tmp_path: Path, chapters: str) -> tuple[dict[str, dict], list]:
    """Grade the class and return ({student: row of grades.csv}, exercises)."""
    marker = tmp_path / "marker"
    marker.write_text("kept", encoding="utf-8")
    holes = submission.select_holes(chapters)
    shares = write_class(tmp_path / "class", holes, marker)
    roster = {s: {"Student": f"{s.title()}, Ann", "ID": str(n), "SIS User ID": f"u{n}",
                  "SIS Login ID": f"{s}1", "Section": "Monday", "ID number": f"n{n}",
                  "Email address": f"{s}@example.org"}
              for n, s in enumerate(STUDENTS)}
    messages: list[str] = []
    rows = grade.grade_all(tmp_path / "class", chapters, tmp_path / "out", seed=2027, say=messages.append,
                           settings=ClassFile(roster=roster))
    assert marker.read_text(encoding="utf-8") == "kept"
    assert len([m for m in messages if m.startswith("[")]) == len(STUDENTS)
    by_name = {r["name"]: r for r in rows}
    assert [*by_name] == [*STUDENTS]
    for name, row in by_name.items():
        points = {h.id: row[h.short] for h in holes if row[h.short] not in (0, "unjudged")}
        expected = round(shares[name] * row["of"], 2) if "unjudged" not in row.values() else row["score"]
        assert row["score"] == expected and (shares[name] or not points), (name, points)
    return by_name, holes


def _read(file: Path) -> list[list[str]]:
    with file.open(newline="", encoding="utf-8") as table:
        return [*csv.reader(table)]


def test_only_own_work_gets_points(tmp_path):
    """Chapter 7 has laws and a measured target. The tables and pages show the same points."""
    rows, holes = _grade_class(tmp_path, "7")
    assert {name: row["score"] for name, row in rows.items()} == {
        "copier": 0, "empty": 0, "half": 35, "liar": 0, "nasty": 0, "right": 100}
    out = tmp_path / "out"

    head, *lines = _read(out / "grades.csv")
    table = [dict(zip(head, line)) for line in lines]
    assert [(r["name"], float(r["score"]), float(r["of"])) for r in table] == [
        (name, rows[name]["score"], 100) for name in STUDENTS]
    assert all(sum(float(r[h.short]) for h in holes) == float(r["score"]) for r in table)

    # Canvas: five columns of the student, one per assignment; the second row has the possible points.
    head, possible, *lines = _read(out / "canvas.csv")
    assert head == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "flowedu chapter 7"]
    assert possible == ["    Points Possible", "", "", "", "", "100"]
    assert lines == [[f"{s.title()}, Ann", str(n), f"u{n}", f"{s}1", "Monday", f"{rows[s]['score']:.1f}"]
                     for n, s in enumerate(STUDENTS)]

    # Moodle maps a student by the id number or the address.
    head, *lines = _read(out / "moodle.csv")
    assert head[:3] == ["Username", "ID number", "Email address"]
    assert len({line[2] for line in lines}) == len(STUDENTS)
    by_mail = {line[2]: dict(zip(head, line)) for line in lines}
    for n, s in enumerate(STUDENTS):
        row = by_mail[f"{s}@example.org"]
        assert row["ID number"] == f"n{n}" and float(row["flowedu chapter 7 (Real)"]) == rows[s]["score"]
        missing = " ".join(h.id for h in holes if not rows[s][h.short])
        assert row["flowedu chapter 7 (Feedback)"] == (f"no points: {missing}" if missing else "")

    for name, row in rows.items():
        page = (out / name / "index.html").read_text(encoding="utf-8")
        assert f"<h1>{name}: {row['score']:g} of 100</h1>" in page
        results = json.loads((out / name / "results.json").read_text(encoding="utf-8"))
        assert results["score"] == row["score"] == sum(t["score"] for t in results["tests"])


# A parametrized test, so that CI runs it for a sixteenth of the commits: it takes about seven minutes.
@pytest.mark.slow
@pytest.mark.parametrize("chapters", ["all"])
def test_only_own_work_gets_points_in_all_chapters(tmp_path, chapters):
    """All exercises that this machine can judge, and an endless loop."""
    rows, holes = _grade_class(tmp_path, chapters)
    judged = [h for h in holes if rows["right"][h.short] != "unjudged"]
    assert rows["right"]["score"] == rows["right"]["of"] == sum(h.points for h in judged)
    assert {name for name, row in rows.items() if row["score"]} == {"half", "right"}
