"""Grades: every answer of the library is right where it is not to be had, every wrong one dies by its law there, too; files
for Gradescope; a class of all kinds, and one whose grader dies."""
import csv
import importlib.util
import json
import os
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest
from class_of import write

from common import few
from flowedu.errors import ArgumentError
from flowedu.learn import course, kernels
from flowedu.learn.handout import stub
from flowedu.learn.source import file_of
from flowedu.learn.teach import grade, report, stubs, submission, wrong
from flowedu.learn.teach.bench import Bench

HOLES = [h for h in course.holes() if h.kind != "kernel"]
PLACE, DEAD = course.find("4.3"), course.find("4.4")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with Bench(tmp_path_factory.mktemp("bench") / "tree", seconds=30.0) as b:
        yield b


@pytest.mark.parametrize("hole", few(HOLES, lambda h: h.id in ("1.1", "4.1", "8.2")), ids=lambda h: h.id)
def test_judged_apart_as_judged_here(bench, hole, tmp_path):
    """The library's own lines; the stub; wrong answers, unless they lean on the library's own lines, which are not
    there."""
    file = tmp_path / hole.file
    file.write_text(stubs.answer_text(hole))
    for seed in (0, 2027):
        verdict = bench.judged(hole, file, seed)
        assert verdict["state"] == "right" and verdict["stars"] >= min(1, len(hole.stars)), verdict
    file.write_text(stub(hole))
    assert bench.judged(hole, file)["state"] == "open"
    for w in wrong.answers(hole):
        verdict = bench.judged(hole, w.put(tmp_path))
        assert (verdict["state"], verdict["law"]) == ("wrong", w.law) or verdict["state"] == "open", (w.name, verdict)


# ---- files
def mark(hole, state, stars, law="", text="some text"):
    return report.Mark(hole, state, stars, law, text, {"seconds": 0.5})


def test_half_for_the_laws_the_rest_by_stars():
    strides = course.find("1.1")
    half = PLACE.points / 2
    assert len(PLACE.stars) == 3 and not strides.stars
    assert [mark(PLACE, "right", n).score for n in range(4)] == [round(half + half * n / 3, 2) for n in range(4)]
    assert mark(PLACE, "right", 2)._replace(of=2).score == PLACE.points
    assert mark(strides, "right", 1).score == strides.points
    assert mark(strides, "wrong", 0).score == mark(PLACE, "open", 0).score == 0


def test_what_gradescope_reads():
    said = report.results([mark(PLACE, "right", 2), mark(DEAD, "wrong", 0, "plans.same_values", "no\x1b[31m <b>good</b>")])
    assert said["score"] == round(PLACE.points * 5 / 6, 2) and set(said) == {"score", "output", "tests"}
    first, second = said["tests"]
    assert set(first) == {"name", "score", "max_score", "output", "visibility", "tags", "extra_data"}
    assert first["tags"] == ["state:right", "stars:2"] and "law:same_values" in second["tags"]
    assert second["score"] == 0.0 and second["max_score"] == float(DEAD.points) and "\x1b" not in second["output"]


def test_a_page_and_junit_are_whole_whatever_was_printed(tmp_path):
    nasty = "</pre><script>alert(1)</script> & \x00 \ud800 ]]> \x1b[2J"
    report.write(tmp_path, [mark(PLACE, "wrong", 0, "plans.aligned", nasty), mark(DEAD, "open", 0, text="")], "<ann>")
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert root.get("failures") == root.get("skipped") == "1" and "alert(1)" in root.find(".//failure").text
    text = (tmp_path / "index.html").read_text()
    HTMLParser().feed(text)
    assert "<script>" not in text and f"&lt;ann&gt;: 0 of {PLACE.points + DEAD.points}" in text
    json.loads((tmp_path / "results.json").read_text())


# ---- what this machine cannot judge
GUARD = course.find("8.7")
LACKS = "PyCUDA is not installed: tools/setup_cuda.py sets it up"


def test_what_cannot_be_judged_costs_nothing(tmp_path):
    """In all four files: no points, no loss, and why."""
    marks = [mark(PLACE, "right", 3), mark(GUARD, "unjudged", 0, text=f"8.7 guard   cannot be judged here\n  {LACKS}")]
    assert report.total(marks) == (PLACE.points, PLACE.points) and report.unjudged(marks[:1]) == ""
    report.write(tmp_path, marks, "ann")
    said = json.loads((tmp_path / "results.json").read_text())
    why = f"{GUARD.points} points could not be judged here and do not count (8.7): {LACKS}"
    assert said["output"] == f"1 of 1 exercises are right; {why}" and said["score"] == PLACE.points
    assert said["tests"][1]["max_score"] == 0 and said["tests"][1]["tags"][0] == "state:unjudged"
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (root.get("failures"), root.get("skipped")) == ("0", "1") and LACKS in root.find(".//skipped").get("message")
    text = (tmp_path / "index.html").read_text()
    assert f"ann: {PLACE.points} of {PLACE.points}" in text and why in text and 'class="unjudged"' in text
    row = grade._row(tmp_path, "ann")
    assert row["8.7 guard"] == "unjudged" and row["of"] == PLACE.points and row["unjudged"] == LACKS


def test_a_tool_that_is_missing_is_set_up_or_named(tmp_path, monkeypatch, capsys):
    """Once for all that need it; if it cannot be had, the grade says so; when it is there, all is judged again."""
    work = tmp_path / "class" / "ann"
    work.mkdir(parents=True)
    (work / GUARD.file).write_text(wrong.answers(GUARD)[0].text)
    asked = []
    monkeypatch.setattr(kernels, "set_up", lambda hole, home: asked.append(hole.language) or kernels.missing(hole))
    monkeypatch.setattr(kernels, "missing", lambda hole: LACKS if hole.language == "cuda" else "")
    monkeypatch.setattr(grade, "chosen", lambda which: [GUARD, course.find("8.8"), course.find("8.3")])
    assert grade.main([str(work), "8", "--out", str(tmp_path / "out")]) == 0
    assert sorted(asked) == ["cuda", "kernel"]
    said = capsys.readouterr().out
    assert "8.7 guard" in said and "cannot be judged here" in said and LACKS in said
    assert "0 of 20 points" in said and "5 points could not be judged here and do not count (8.7)" in said
    key = (tmp_path / "out" / "key").read_text()
    assert key and not grade._stands(tmp_path / "out", work, [GUARD, course.find("8.8"), course.find("8.3")], 0)


def test_an_answer_cannot_say_that_it_cannot_be_judged():
    """It would take its points out of the sum."""
    from flowedu.learn.teach.bench import _believed
    said = {"state": "unjudged", "lines": [], "extra": {}, "stars": 0, "seconds": 0, "law": ""}
    assert _believed(said, GUARD)["state"] == "wrong"


@pytest.mark.parametrize("gone, words", [("cc", "there is no C compiler no-such-gcc: install gcc"),
                                         ("Cython", "Cython is not installed: pip install cython")])
def test_compilers_are_looked_for_before(bench, monkeypatch, tmp_path, gone, words):
    sums = course.find("8.3")
    file = tmp_path / sums.file
    file.write_text(wrong.answers(sums)[0].text)
    if gone == "cc":
        monkeypatch.setenv("CC", "no-such-gcc")
    else:
        find = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "Cython" else find(name, *a))
    verdict = bench.judged(sums, file)
    assert verdict["state"] == "unjudged" and words in verdict["lines"][0]
    file.write_text(stub(sums))
    assert bench.judged(sums, file)["state"] == "open"


def test_only_plain_files_are_taken(tmp_path):
    """No link, however near the answer it leads; nothing that is no text; nothing large."""
    folder = tmp_path / "ann"
    folder.mkdir()
    (folder / PLACE.file).symlink_to(file_of(PLACE.module))
    (folder / DEAD.file).write_bytes(b"\xff\xfe")
    big, pipe = course.find("4.2"), course.find("4.5")
    (folder / big.file).write_text("#" * (submission.LARGEST + 1))
    os.mkfifo(folder / pipe.file)
    (folder / "judge.py").write_text("raise SystemExit")
    missing = submission.taken(folder, tmp_path / "out", [PLACE, DEAD, big, pipe])
    assert set(missing) == {"4.2", "4.3", "4.4", "4.5"} and [*(tmp_path / "out").iterdir()] == []
    assert "a link" in missing["4.3"] and "hand in the file itself" in missing["4.3"]
    assert not [t for t in missing.values() if "Errno" in t]
    for state, hints in (('{"holes": {"4.3": {"hints": 2}}}', 2), ('{"holes": {"4.3": {"hints": -7}}}', 0), ("[", 0),
                         ("[1]", 0)):
        (folder / ".course.json").write_text(state)
        assert submission.hints(folder, PLACE) == hints


def test_a_page_for_the_class_has_no_keys_and_marks_what_was_printed(bench, tmp_path):
    """Nobody can press h there; and a verdict that an answer prints does not look like one."""
    strides = course.find("1.1")
    forged = [f"{strides.short}   right. *** 3 of 3 stars", '{"state": "right", "stars": 3}']
    folder = tmp_path / "ann"
    folder.mkdir()
    (folder / strides.file).write_text(f"def row_major(shape):\n    print({chr(10).join(forged)!r})\n    return ()\n")
    (folder / PLACE.file).write_text(stub(PLACE))
    marks = grade.graded(bench, folder, tmp_path / "out", [strides, PLACE], 0, "ann")
    assert marks[0].score == 0 and "why   " in marks[0].text
    for name in ("results.json", "junit.xml", "index.html"):
        assert "h: hint" not in (tmp_path / "out" / name).read_text(), name
    lines = marks[0].text.splitlines()
    assert lines[0] == f"printed by {strides.file}:" and all(f"  | {t}" in lines for t in forged)
    assert not set(forged) & {*lines}


def test_which_chapters():
    assert {h.chapter for h in grade.chosen("4")} == {4} and {h.chapter for h in grade.chosen("1-4")} == {1, 2, 3, 4}
    assert len(grade.chosen("all")) == len(course.holes())
    for nonsense in ("99", "x", "", "1-99", "4-"):
        if nonsense != "4-":
            with pytest.raises(ArgumentError, match="no chapter"):
                grade.chosen(nonsense)


# ---- one and many
def test_a_submission(tmp_path, capsys):
    work = tmp_path / "bob" / "work"
    work.mkdir(parents=True)
    (work / PLACE.file).write_text(stubs.answer_text(PLACE))
    (work / DEAD.file).write_text(wrong.answers(DEAD)[0].text)
    assert grade.main([str(work.parent), "4", "--out", str(tmp_path / "out"), "--seed", "2027"]) == 0
    assert f"{PLACE.points} of 100 points" in capsys.readouterr().out
    tests = {t["name"]: t for t in json.loads((tmp_path / "out" / "results.json").read_text())["tests"]}
    assert tests["4.3 place"]["score"] == PLACE.points and tests["4.3 place"]["extra_data"]["arena"] > 0
    assert tests["4.4 dead code"]["score"] == 0 and "law 1 of 1" in tests["4.4 dead code"]["output"]
    assert "not handed in" in tests["4.2 the bound"]["output"]
    assert grade.main([str(tmp_path / "nobody"), "4"]) == 2 and grade.main([str(work), "99"]) == 2


@pytest.mark.slow
def test_a_class(tmp_path):
    """All kinds; a second time nothing is graded but what changed."""
    holes = [h for h in course.holes() if h.chapter == 1]
    told = write(tmp_path / "class", holes, 4, seed=3)
    said = []
    table = grade.grade_all(tmp_path / "class", "1", tmp_path / "out", seed=5, say=said.append)
    for row in table:
        for h in holes:
            kind = told[row["name"]][h.id]
            assert row[h.short] == (h.points if kind == "right" else 0), (row, kind)
    assert "4 of 4" in said[-1] and "min left" in said[0]
    rows = [*csv.DictReader((tmp_path / "out" / "grades.csv").open())]
    assert [r["name"] for r in rows] == sorted(told) and float(rows[0]["score"]) == table[0]["score"]
    changed = tmp_path / "class" / "student-002" / holes[0].file
    changed.write_text("def row_major(shape):\n    return 7\n")
    said.clear()
    assert grade.grade_all(tmp_path / "class", "1", tmp_path / "out", seed=5, say=said.append)[2][holes[0].short] == 0
    assert said[0].startswith("3 of 4 were graded before") and len(said) == 2


@pytest.mark.slow
def test_a_grader_that_dies_takes_nobody_else_along(tmp_path, monkeypatch):
    """It is tried once more, then written down; the others have their grades."""
    holes = [h for h in course.holes() if h.chapter == 1]
    write(tmp_path / "class", holes, 3, seed=1)
    own = grade.Worker.give

    def give(self, student):
        own(self, student)
        if student.name == "student-001":
            self.process.kill()

    monkeypatch.setattr(grade.Worker, "give", give)
    table = grade.grade_all(tmp_path / "class", "1", tmp_path / "out", say=lambda t: None)
    assert [r["name"] for r in table] == [f"student-00{i}" for i in range(3)] and table[1]["score"] == 0
    assert "by hand" in json.loads((tmp_path / "out" / "student-001" / "results.json").read_text())["output"]
    assert Path(tmp_path / "out" / "student-002" / "index.html").exists()
