"""Weights, must exercises, remarks, and the tables for Canvas and Moodle, without grading an answer again."""
import csv
import json

import pytest

from flowedu.errors import ArgumentError
from flowedu_course import course
from flowedu_course.runner import Runner
from flowedu_course.teach import classfile, grade, report, submission, syllabus
from flowedu_course.teach.classfile import ClassFile

HOLES = [h for h in course.holes() if h.chapter == 4]
PLACE, DEAD = course.find("4.3"), course.find("4.4")


def table_of(file):
    with file.open(newline="", encoding="utf-8") as f:
        return [*csv.DictReader(f)]


@pytest.fixture
def graded(tmp_path):
    """Two students who were graded before: ann has 4.3 with 3 stars and a failure at 4.4, bob has nothing."""
    states = {PLACE.id: ("right", 3, ""), DEAD.id: ("wrong", 0, "plans.same_values")}
    marks = {"ann": [report.Mark(h, *states.get(h.id, ("open", 0, "")), "text", {"arena": 7}) for h in HOLES],
             "bob": [report.Mark(h, "open", 0, "", "", {}) for h in HOLES]}
    for name, some in marks.items():
        (tmp_path / "class" / name).mkdir(parents=True)
        out = tmp_path / "out" / name
        report.write(out, some, name)
        submission.copy_answers(tmp_path / "class" / name, out / "work", HOLES)
        report.put(out / "key", submission.key(out / "work", HOLES, 0))
    return tmp_path


def grades(folder, settings):
    said = []
    grade.grade_all(folder / "class", "4", folder / "out", say=said.append, settings=settings)
    assert said[0].startswith("2 of 2 were graded before"), said
    return {r["name"]: r for r in table_of(folder / "out" / "grades.csv")}


def test_other_weights_need_no_other_verdicts(graded):
    """The law, stars, and measures of the first run stay, and equal settings give equal files."""
    assert grades(graded, None)["ann"]["score"] == str(float(PLACE.points))
    points = {h.id: 50 if h == PLACE else 10 for h in HOLES}
    ann = grades(graded, ClassFile(points))["ann"]
    assert float(ann["score"]) == float(ann["4.3 place"]) == 50 and float(ann["of"]) == 40 + 10 * len(HOLES)
    said = json.loads((graded / "out" / "ann" / "results.json").read_text(encoding="utf-8"))
    dead = next(t for t in said["tests"] if t["name"] == DEAD.short)
    assert "law:same_values" in dead["tags"] and dead["extra_data"]["arena"] == 7 and dead["max_score"] == 10
    assert "plans.same_values" in (graded / "out" / "ann" / "junit.xml").read_text(encoding="utf-8")
    assert grades(graded, None)["ann"]["score"] == str(float(PLACE.points))


def test_missing_must_exercises_come_first(graded):
    rows = grades(graded, ClassFile(must=frozenset({"4.3", "4.4"})))
    assert (rows["ann"]["must"], rows["bob"]["must"]) == ("4.4", "4.3 4.4")
    said = json.loads((graded / "out" / "ann" / "results.json").read_text(encoding="utf-8"))
    assert said["output"].startswith("must exercises that are missing: 4.4 dead code (wrong); 1 of ")
    page = (graded / "out" / "ann" / "index.html").read_text(encoding="utf-8")
    assert page.index("must exercises that are missing") < page.index("<table>")
    assert page.count("<td>must</td>") == 2


def test_a_remark_is_on_the_page_and_in_the_tables(graded):
    remarks = {"ann": {"4.4": "<b>See me</b>\nabout this.", "all": "Good."}}
    ann = grades(graded, ClassFile(remarks=remarks))["ann"]
    assert ann["remarks"] == "all: Good.; 4.4: <b>See me</b> about this."
    for _ in range(2):                             # a second run does not repeat it
        grades(graded, ClassFile(remarks=remarks))
    page = (graded / "out" / "ann" / "index.html").read_text(encoding="utf-8")
    assert page.count("remark: &lt;b&gt;See me&lt;/b&gt;") == 1 and page.count("remark: Good.") == 1
    said = json.loads((graded / "out" / "ann" / "results.json").read_text(encoding="utf-8"))
    dead = next(t for t in said["tests"] if t["name"] == DEAD.short)
    assert "Good." in said["output"] and "See me" in dead["output"]
    assert "See me" not in str(grades(graded, None))
    assert "See me" not in (graded / "out" / "ann" / "results.json").read_text(encoding="utf-8")


def test_canvas_and_moodle_get_their_columns(graded):
    roster = {"ann": {"folder": "ann", "Student": "Lee, Ann", "ID": "17", "Email address": "ann@example.edu"}}
    grades(graded, ClassFile(must=frozenset({"4.4"}), remarks={"ann": {"4.4": "See me"}}, roster=roster))
    text = (graded / "out" / "canvas.csv").read_text(encoding="utf-8")
    assert text.splitlines()[0] == "Student,ID,SIS User ID,SIS Login ID,Section,flowedu chapter 4"
    possible, ann, bob = table_of(graded / "out" / "canvas.csv")
    assert possible["Student"].strip() == "Points Possible" and float(possible["flowedu chapter 4"]) == 100
    assert (ann["Student"], ann["ID"], float(ann["flowedu chapter 4"])) == ("Lee, Ann", "17", PLACE.points)
    assert (bob["Student"], bob["SIS Login ID"], float(bob["flowedu chapter 4"])) == ("bob", "bob", 0)
    ann, bob = table_of(graded / "out" / "moodle.csv")
    assert (ann["Username"], ann["Email address"]) == ("ann", "ann@example.edu")
    assert float(ann["flowedu chapter 4 (Real)"]) == PLACE.points
    feedback = ann["flowedu chapter 4 (Feedback)"]
    assert feedback.startswith("must exercises that are missing: 4.4; no points: 4.1 4.2 4.4")
    assert feedback.endswith("4.4: See me")


# ---- files
def test_points_by_time_are_in_proportion_and_keep_their_sum():
    for holes in (HOLES, course.holes()):
        points = classfile.by_time(holes)
        assert sum(points.values()) == sum(h.points for h in holes) and {*points} == {h.id for h in holes}
        rate = sum(points.values()) / sum(h.minutes for h in holes if not h.is_hunt)
        assert all(abs(points[h.id] - rate * h.minutes) < 1 for h in holes if not h.is_hunt)
        assert not any(points[h.id] for h in holes if h.is_hunt)


def test_a_written_table_can_be_read(tmp_path):
    file = tmp_path / "weights.csv"
    assert classfile.main(["4", "--by", "time", "--out", str(file)]) == 0
    points, must = classfile.read_weights(file, HOLES, [h.id for h in course.holes()])
    assert points == classfile.by_time(HOLES) and must == frozenset()
    assert classfile.main(["4", "--out", str(file)]) == 2               # an edited table is never overwritten
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([lines[0], lines[1] + "yes", *lines[2:]]), encoding="utf-8")
    assert classfile.read_weights(file, HOLES, points)[1] == {HOLES[0].id}


@pytest.mark.parametrize("lines, fault", [
    (["4.1,5", "4.2,x", "total,5"], "points of 4.2 are not a number"),
    (["4.1,5", "4.2,-1", "total,4"], "points of 4.2 are not a number"),
    (["4.1,5", "4.9x,1", "total,6"], "there is no exercise 4.9x"),
    (["4.1,5", "4.1,1", "total,6"], "there are two rows for 4.1"),
    (["4.1,5", "total,5"], "an exercise is missing"),
    (["4.1,5", "4.2,1", "total,7"], "the last row has another sum"),
    (["4.1,5", "4.2,1"], "the last row has another sum"),
    (["4.1,5,maybe", "4.2,1", "total,6"], "must of 4.1 is neither yes nor no"),
])
def test_a_fault_in_a_table_of_weights_is_named(tmp_path, lines, fault):
    file = tmp_path / "weights.csv"
    file.write_text("\n".join(["exercise,points,must", *lines]), encoding="utf-8")
    with pytest.raises(ArgumentError, match=fault):
        classfile.read_weights(file, HOLES[:2], [h.id for h in HOLES])


def test_remarks_are_a_table_or_a_folder(tmp_path):
    table, folder = tmp_path / "remarks.csv", tmp_path / "remarks"
    table.write_text("student,exercise,remark\nann,4.3,one\nann,4.3,two\nann,,all of it\n", encoding="utf-8")
    (folder / "ann").mkdir(parents=True)
    for name, text in (("4.3.txt", "one\ntwo\n"), ("all.md", "all of it"), ("4.3.py", "no remark")):
        (folder / "ann" / name).write_text(text, encoding="utf-8")
    want = {"ann": {"4.3": "one\ntwo", "all": "all of it"}}
    for source in (table, folder):
        assert classfile.read_remarks(source, ["ann"], HOLES) == want
    for students, holes, fault in ((["bob"], HOLES, "no submission of ann"),
                                   (["ann"], HOLES[:1], "no exercise 4.3")):
        with pytest.raises(ArgumentError, match=fault):
            classfile.read_remarks(table, students, holes)
    table.write_text("student,remark\nann,x\n", encoding="utf-8")
    with pytest.raises(ArgumentError, match="a column is missing"):
        classfile.read_remarks(table, ["ann"], HOLES)


def test_the_fast_track_has_one_exercise_per_chapter():
    fast = course.fast_track()
    assert [h.chapter for h in fast] == [c.number for c in course.chapters()]
    assert grade.select_holes("fast") == fast


def test_the_fast_track_has_a_list_and_a_syllabus(tmp_path, capsys):
    lines = Runner(course.HOME, tmp_path / "work").list(fast=True)
    assert [t.split()[2] for t in lines if t.startswith("  [")] == [h.id for h in course.fast_track()]
    assert syllabus.main(["4", "fast", "--out", str(tmp_path / "s.md")]) == 0
    page = capsys.readouterr().out
    fast = {h.id for h in course.fast_track()}
    rows = [t for t in page.splitlines() if t.startswith("| ") and t[2:5] in fast]
    assert len(rows) == len(fast) and "make milestone" not in page
    hours = sum(c.hours for c in map(syllabus.shortened, course.chapters()))
    assert hours < 0.5 * sum(c.hours for c in course.chapters())
