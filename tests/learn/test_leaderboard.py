"""The leaderboard of a class: ranked by stars, points, and measures, never by time. Names are shown as text,
and equal results share a place.
"""
import json
from html.parser import HTMLParser

import pytest

from flowedu.errors import ArgumentError
from flowedu_course import course
from flowedu_course.teach import leaderboard, report

PLACE, DEAD, ARGMAX, REUSE = (course.find(id) for id in ("4.3", "4.4", "8.4", "4.8"))


def graded(folder, name, **marks):
    """Write a student's results in the format of a grade: {hole: (stars, measures)}, with stars None for a
    wrong answer.
    """
    rows = []
    for hole in (PLACE, DEAD, ARGMAX, REUSE):
        stars, extra = marks.get(hole.functions[0], (None, {}))
        rows.append(report.Mark(hole, "wrong" if stars is None else "right", stars or 0, "", "",
                                {"seconds": 3.0, **extra}))
    report.write(folder / name, rows, name)


def board(folder):
    """Return {title: rows} and the text."""
    some = leaderboard.tables(folder)
    return {t.title: t.rows for t in some}, leaderboard.text(some)


def test_by_stars_then_points_and_equal_ones_share_a_place(tmp_path):
    graded(tmp_path, "cid", place=(3, {"arena": 900, "bound": 800}))
    graded(tmp_path, "bob", place=(1, {"arena": 1000, "bound": 800}), dead=(2, {"nodes": 5, "library": 5}))
    graded(tmp_path, "eve", place=(1, {"arena": 1000, "bound": 800}), dead=(2, {"nodes": 5, "library": 5}))
    graded(tmp_path, "ann", place=(0, {"arena": 5000, "bound": 800}))
    (tmp_path / "zoe").mkdir()
    (tmp_path / "Dan").mkdir()
    (tmp_path / "Dan" / "results.json").write_text('{"tests": [{"name": 3}]}')
    rows, text = board(tmp_path)
    assert [r[:3] for r in rows["6 students"]] == [
        ("1", "bob", "3"), ("1", "eve", "3"), ("3", "cid", "3"), ("4", "ann", "0"), ("", "Dan", ""),
        ("", "zoe", "")]
    points = [float(r[3]) for r in rows["6 students"][:4]]
    assert points[0] >= points[2] and text.count("no results") == 2 and text.index("Dan") < text.index("zoe")
    assert [r[:4] for r in rows["4.3 place"]] == [("1", "cid", "***", "900"), ("2", "bob", "*", "1,000"),
                                                  ("2", "eve", "*", "1,000"), ("4", "ann", "", "5,000")]


def test_more_is_better_where_the_rule_says_so(tmp_path):
    graded(tmp_path, "a", reusable=(1, {"taken": 3, "library": 9}))
    graded(tmp_path, "b", reusable=(1, {"taken": 4, "library": 9}))
    assert [r[1] for r in board(tmp_path)[0]["4.8 in place"]] == ["b", "a"]


def test_timings_are_not_shown(tmp_path):
    """Neither the duration of a check nor kernel timings appear; other measures do."""
    graded(tmp_path, "a", argmax=(2, {"right": True, "score": 0, "yours": 77.25, "NumPy": 88.25,
                                      "library": 99.25}))
    rows, text = board(tmp_path)
    assert rows["8.4 argmax"][0][3:] == ("0",) and "right" in text
    assert not any(t in text for t in ("77", "88", "99", "seconds", "NumPy", "3.0"))
    for hole in course.holes():
        found = leaderboard.measures(hole)
        assert not {"yours", "NumPy", "library", "bound", "given", "right"} & found.keys(), hole.id
        assert found or not hole.stars or all("yours" in r or r == "right" for r in hole.stars), hole.id
    assert leaderboard.measures(PLACE) == {"arena": True} and leaderboard.measures(REUSE) == {"taken": False}


def test_names_and_numbers_are_sanitized(tmp_path):
    graded(tmp_path, "<script>alert(1)<", place=(1, {"arena": 10}))
    graded(tmp_path, "\x1b[31m" + "x" * 60, place=(1, {"arena": float("nan")}))
    graded(tmp_path, "\x1b[32m" + "x" * 60, place=(1, {"arena": "<b>"}))
    graded(tmp_path, "many", place=(99, {"arena": True}))
    rows, text = board(tmp_path)
    page = leaderboard.page(leaderboard.tables(tmp_path))
    HTMLParser().feed(page)
    assert ("<script>" not in page and "&lt;script&gt;" in page and "\x1b" not in page + text
            and "<b>" not in page)
    assert len(rows["4.3 place"]) == 1 and len(rows["4 students"]) == len({r[1] for r in rows["4 students"]}) == 4
    assert max(int(r[2]) for r in rows["4 students"]) == len(PLACE.stars)


def test_the_command_writes_the_same_each_time(tmp_path, capsys):
    graded(tmp_path, "a", place=(1, {"arena": 10}))
    graded(tmp_path, "b", dead=(1, {"nodes": 10}))
    found = []
    for _ in range(2):
        assert leaderboard.main([str(tmp_path)]) == 0
        found.append([(tmp_path / f"leaderboard.{e}").read_bytes() for e in ("txt", "html")])
    assert found[0] == found[1] and found[0][0].decode() in capsys.readouterr().out
    empty = tmp_path / "a" / "empty"
    empty.mkdir()
    assert leaderboard.main([str(empty)]) == 2 and "make grade-all" in capsys.readouterr().err
    with pytest.raises(ArgumentError):
        leaderboard.entries(tmp_path / "nowhere", [])
    json.loads((tmp_path / "a" / "results.json").read_text(encoding="utf-8"))  # the input files are unchanged
