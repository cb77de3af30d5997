"""Grades: the library's answers are right in a tree without them, wrong answers fail their laws there,
Gradescope files are complete, and a class is graded even if a grader crashes.
"""
import csv
import importlib.util
import io
import json
import mmap
import os
import tempfile
import time
import types
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest
from class_of import write
from hypothesis import example, given
from hypothesis import strategies as st

from common import few
from flowedu.errors import ArgumentError
from flowedu_course import course, kernels
from flowedu_course.course import file_of
from flowedu_course.handout import stub
from flowedu_course.laws import Verdict
from flowedu_course.teach import bench as bench_module
from flowedu_course.teach import grade, gradebook, report, stubs, submission, wrong
from flowedu_course.teach.bench import Bench

HOLES = [h for h in course.holes() if not h.is_compiled]
STRIDES, PLACE, DEAD = course.find("1.1"), course.find("4.3"), course.find("4.4")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with Bench(tmp_path_factory.mktemp("bench") / "tree") as b:
        yield b


@pytest.mark.parametrize("hole", few(HOLES, lambda h: h.id in ("1.1", "4.1", "4.9", "8.2")),
                         ids=lambda h: h.id)
def test_bench_verdicts_match_local_verdicts(bench, hole, tmp_path):
    """Judge the library's code, the stub, and wrong answers, except answers that use library code outside the
    tree.
    """
    file = tmp_path / hole.file
    file.write_text(stubs.library(hole), encoding="utf-8")
    for seed in (0, 2027):
        verdict = bench.judged(hole, file, seed)
        assert verdict.state == "right" and verdict.stars >= min(1, len(hole.stars)), verdict
    file.write_text(stub(hole), encoding="utf-8")
    assert bench.judged(hole, file).state == "open"
    for w in wrong.answers(hole):
        verdict = bench.judged(hole, w.put(tmp_path))
        assert (verdict.state, verdict.law) == ("wrong", w.law) or verdict.state == "open", (w.name, verdict)


def test_a_verdict_does_not_depend_on_the_memory_of_the_process_that_grades(bench, tmp_path):
    # Its law starts threads, which need address space.
    hole = course.find("6.10")
    file = tmp_path / hole.file
    file.write_text(stubs.answer_text(hole), encoding="utf-8")
    # No memory is used.
    with mmap.mmap(-1, 10 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ):
        verdict = bench.judged(hole, file)
    assert verdict.state == "right", verdict


@pytest.mark.slow
def test_an_answer_is_judged_again_if_nobody_worked(tmp_path, monkeypatch):
    mark, judge = tmp_path / "stalled", bench_module._judge

    def stall_once(*args):
        if not mark.exists():
            mark.touch()
            time.sleep(1000)
        return judge(*args)

    monkeypatch.setattr(bench_module, "_judge", stall_once)
    file = tmp_path / STRIDES.file
    file.write_text(stubs.answer_text(STRIDES), encoding="utf-8")
    with Bench(tmp_path / "tree", seconds=10.0) as b:
        verdict = b.judged(STRIDES, file)
    assert mark.exists() and verdict.state == "right", verdict


# ---- files
def mark(hole, state, stars, law="", text="some text"):
    return report.Mark(hole, state, stars, law, text, {"seconds": 0.5})


def test_laws_give_half_of_the_points_and_stars_the_rest():
    strides = course.find("1.1")
    half = PLACE.points / 2
    assert len(PLACE.stars) == 3 and not strides.stars
    assert [mark(PLACE, "right", n).score for n in range(4)] == [round(half + half * n / 3, 2)
                                                                 for n in range(4)]
    assert mark(PLACE, "right", 2)._replace(of=2).score == PLACE.points
    assert mark(strides, "right", 1).score == strides.points
    assert mark(strides, "wrong", 0).score == mark(PLACE, "open", 0).score == 0


def test_gradescope_results_have_the_required_fields():
    said = report.results([mark(PLACE, "right", 2), mark(DEAD, "wrong", 0, "plans.same_values",
                                                         "no\x1b[31m <b>good</b>")])
    assert said["score"] == round(PLACE.points * 5 / 6, 2) and set(said) == {"score", "output", "tests"}
    first, second = said["tests"]
    assert set(first) == {"name", "score", "max_score", "output", "visibility", "tags", "extra_data"}
    assert first["tags"] == ["state:right", "stars:2"] and "law:same_values" in second["tags"]
    assert (second["score"] == 0.0 and second["max_score"] == float(DEAD.points)
            and "\x1b" not in second["output"])


def test_page_and_junit_are_well_formed_for_any_output(tmp_path):
    nasty = "</pre><script>alert(1)</script> & \x00 \ud800 ]]> \x1b[2J"
    report.write(tmp_path, [mark(PLACE, "wrong", 0, "plans.aligned", nasty), mark(DEAD, "open", 0, text="")],
                 "<ann>")
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert root.get("failures") == root.get("skipped") == "1" and "alert(1)" in root.find(".//failure").text
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    HTMLParser().feed(text)
    assert "<script>" not in text and f"&lt;ann&gt;: 0 of {PLACE.points + DEAD.points}" in text
    json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))


# exercises that this machine cannot judge
GUARD = course.find("8.7")
LACKS = "PyCUDA is not installed: run tools/setup_cuda.py"


def test_unjudged_exercises_do_not_count(tmp_path):
    """All four files show no points, no loss, and the reason."""
    marks = [mark(PLACE, "right", 3), mark(GUARD, "unjudged", 0,
                                           text=f"8.7 guard   cannot be judged here\n  {LACKS}")]
    assert report.total(marks) == (PLACE.points, PLACE.points) and report.unjudged(marks[:1]) == ""
    report.write(tmp_path, marks, "ann")
    said = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    why = f"{GUARD.points} points could not be judged here and do not count (8.7): {LACKS}"
    assert said["output"] == f"1 of 1 exercises are right; {why}" and said["score"] == PLACE.points
    assert said["tests"][1]["max_score"] == 0 and said["tests"][1]["tags"][0] == "state:unjudged"
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (root.get("failures"), root.get("skipped")) == ("0",
                                                           "1") and LACKS in root.find(".//skipped").get(
                                                               "message")
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert f"ann: {PLACE.points} of {PLACE.points}" in text and why in text and 'class="unjudged"' in text
    row = gradebook.row(tmp_path, "ann")
    assert row["8.7 guard"] == "unjudged" and row["of"] == PLACE.points and row["unjudged"] == LACKS


def test_a_missing_tool_is_set_up_or_reported(tmp_path, monkeypatch, capsys):
    """A tool is set up once for all exercises; if that fails, the grade says so, and later grading judges
    them again.
    """
    work = tmp_path / "class" / "ann"
    work.mkdir(parents=True)
    (work / GUARD.file).write_text(wrong.answers(GUARD)[0].text, encoding="utf-8")
    asked = []
    monkeypatch.setattr(kernels, "set_up", lambda hole, home: asked.append(hole.language)
                        or kernels.missing(hole))
    monkeypatch.setattr(kernels, "missing", lambda hole: LACKS if hole.language == "cuda" else "")
    monkeypatch.setattr(grade, "select_holes", lambda which: [GUARD, course.find("8.8"), course.find("8.3")])
    assert grade.main([str(work), "8", "--out", str(tmp_path / "out")]) == 0
    assert sorted(asked) == ["cuda", "kernel"]
    said = capsys.readouterr().out
    assert "8.7 guard" in said and "cannot be judged here" in said and LACKS in said
    assert "0 of 20 points" in said and "5 points could not be judged here and do not count (8.7)" in said
    key = (tmp_path / "out" / "key").read_text(encoding="utf-8")
    assert (key and not grade._stands(tmp_path / "out", work, [GUARD, course.find("8.8"), course.find("8.3")],
                                      0))


def test_an_answer_cannot_declare_itself_unjudged():
    """Otherwise its points would be removed from the total."""
    from flowedu_course.teach.together import believed
    said = {"state": "unjudged", "lines": [], "extra": {}, "stars": 0, "seconds": 0, "law": ""}
    assert believed(said, GUARD).state == "wrong"


@pytest.mark.parametrize("gone, words", [("cc", "there is no C compiler no-such-gcc: install gcc"),
                                         ("Cython", "Cython is not installed: pip install cython")])
def test_compilers_are_checked_before_grading(bench, monkeypatch, tmp_path, gone, words):
    sums = course.find("8.3")
    file = tmp_path / sums.file
    file.write_text(wrong.answers(sums)[0].text, encoding="utf-8")
    if gone == "cc":
        monkeypatch.setenv("CC", "no-such-gcc")
    else:
        find = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "Cython"
                            else find(name, *a))
    verdict = bench.judged(sums, file)
    assert verdict.state == "unjudged" and words in verdict.lines[0]
    file.write_text(stub(sums), encoding="utf-8")
    assert bench.judged(sums, file).state == "open"


def test_only_plain_files_are_accepted(tmp_path):
    """Links, files that are not text, and large files are refused."""
    folder = tmp_path / "ann"
    folder.mkdir()
    (folder / PLACE.file).symlink_to(file_of(PLACE.module))
    (folder / DEAD.file).write_bytes(b"\xff\xfe")
    big, pipe = course.find("4.2"), course.find("4.5")
    (folder / big.file).write_text("#" * (submission.LARGEST + 1), encoding="utf-8")
    os.mkfifo(folder / pipe.file)
    (folder / "judge.py").write_text("raise SystemExit")
    missing = submission.copy_answers(folder, tmp_path / "out", [PLACE, DEAD, big, pipe])
    assert set(missing) == {"4.2", "4.3", "4.4", "4.5"} and [*(tmp_path / "out").iterdir()] == []
    assert "a link" in missing["4.3"] and "hand in the file itself" in missing["4.3"]
    assert not [t for t in missing.values() if "Errno" in t]
    for state, hints in (('{"holes": {"4.3": {"hints": 2}}}', 2), ('{"holes": {"4.3": {"hints": -7}}}', 0),
                         ("[", 0), ("[1]", 0)):
        (folder / ".course.json").write_text(state, encoding="utf-8")
        assert submission.hints(folder, PLACE) == hints


def test_the_class_page_has_no_keys_and_marks_printed_output(bench, tmp_path):
    """The page has no key bindings, and a verdict that an answer prints is marked as output."""
    strides = course.find("1.1")
    forged = [f"{strides.short}   right. *** 3 of 3 stars", '{"state": "right", "stars": 3}']
    folder = tmp_path / "ann"
    folder.mkdir()
    (folder / strides.file).write_text(f"def row_major(shape):\n    print({chr(10).join(forged)!r})\n    "
                                       f"return ()\n", encoding="utf-8")
    (folder / PLACE.file).write_text(stub(PLACE), encoding="utf-8")
    marks = grade.graded(bench, folder, tmp_path / "out", [strides, PLACE], 0, "ann")
    assert marks[0].score == 0 and "why   " in marks[0].text
    for name in ("results.json", "junit.xml", "index.html"):
        assert "h: hint" not in (tmp_path / "out" / name).read_text(encoding="utf-8"), name
    lines = marks[0].text.splitlines()
    assert lines[0] == f"printed by {strides.file}:" and all(f"  | {t}" in lines for t in forged)
    assert not set(forged) & {*lines}


def test_chapters_are_parsed():
    assert ({h.chapter for h in grade.select_holes("4")} == {4} and {h.chapter
                                                               for h in grade.select_holes("1-4")} == {1, 2, 3, 4})
    assert len(grade.select_holes("all")) == len(course.holes())
    for nonsense in ("99", "x", "", "1-99", "4-"):
        if nonsense != "4-":
            with pytest.raises(ArgumentError, match="no chapter"):
                grade.select_holes(nonsense)


# one submission and a class
def test_a_submission(tmp_path, capsys):
    work = tmp_path / "bob" / "work"
    work.mkdir(parents=True)
    (work / PLACE.file).write_text(stubs.answer_text(PLACE), encoding="utf-8")
    (work / DEAD.file).write_text(wrong.answers(DEAD)[0].text, encoding="utf-8")
    assert grade.main([str(work.parent), "4", "--out", str(tmp_path / "out"), "--seed", "2027"]) == 0
    assert f"{PLACE.points} of 100 points" in capsys.readouterr().out
    tests = {t["name"]: t
             for t in json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))["tests"]}
    assert tests["4.3 place"]["score"] == PLACE.points and tests["4.3 place"]["extra_data"]["arena"] > 0
    assert tests["4.4 dead code"]["score"] == 0 and "law 1 of 2" in tests["4.4 dead code"]["output"]
    assert "not handed in" in tests["4.2 the bound"]["output"]
    assert grade.main([str(tmp_path / "nobody"), "4"]) == 2 and grade.main([str(work), "99"]) == 2


# folder names, and time
NAMES = [" lead", "trail ", "  ", "a\tb", "a\nb", "zero\u200bwidth", "\u202egnp", "grades.csv", "index.html",
         "results.json", ".csv", "CON", "x" * 255, "%20lead", "=1+1", "-2", "a,b;c'\"", "<b>", "Ann", "ann",
         "\u00fc",
         "u\u0308", "a\\nb", "\\", os.fsdecode(b"\xff\xfe"), os.fsdecode(b"caf\xe9"), "{}", "null", "%s",
         "$HOME", "*", "leaderboard.txt", "work"]
PARTS = st.sampled_from([b" ", b"\t", b"\n", b"%", b".", b"\\", b"\xff", b"=", b"-", b"a", b"grades.csv",
                         b"'", b'"', b",",
                         "\u200b".encode(), "\u202e".encode(), "\u00fc".encode(), b"\r", b"\x1b[2J", b"work",
                         b"\xed\xa0\x80"])
DRAWN = (st.binary(min_size=1, max_size=255) | st.lists(PARTS, min_size=1, max_size=20).map(b"".join)).filter(
    lambda b: not set(b) & {0, ord("/")} and b not in (b".", b"..") and len(b) <= 255)


@given(st.lists(DRAWN, min_size=1, max_size=6, unique=True))
@example([os.fsencode(n) for n in NAMES])
def test_a_folder_of_any_name_has_a_row_of_its_own(names):
    """Names derived from another's output folder get their own rows too; every skipped folder is reported."""
    names = {*names, *(os.fsencode(submission.output_name(os.fsdecode(n))) for n in names)}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as out:
        for n in names:
            os.mkdir(os.fsencode(folder) + b"/" + n)
        others = submission.find_ignored(Path(folder))
        graded = submission.students(Path(folder)) if len(others) < len(names) else []
        assert {os.fsencode(p.name) for p in [*graded, *others]} == names and not {*graded} & {*others}
        assert all(p.name.startswith(".") for p in others)
        rows = []
        for p in graded:
            to = Path(out, submission.output_name(p.name))
            report.write(to, [mark(PLACE, "right", 3)], submission.label(p.name))
            rows.append(gradebook.row(to, p.name))
            assert json.loads(json.dumps(p.name)) == p.name
            assert to.name not in submission.RESERVED and to.parent == Path(out)
        assert len([*Path(out).iterdir()]) == len(graded) and len({r["name"] for r in rows}) == len(rows)
        assert all(r["name"].isprintable() for r in rows)
        gradebook.write_table(Path(out, "grades.csv"), rows, [PLACE])
        with open(Path(out, "grades.csv"), newline="", encoding="utf-8") as table:
            read = [r["name"] for r in csv.DictReader(table)]
        assert [t.removeprefix("'") for t in read] == [r["name"].removeprefix("'") for r in rows]
        assert not [t for t in read if t.strip()[:1] in {*"=+-@"}]


def test_a_class_of_folders_of_all_names(tmp_path):
    """Real workers grade each folder; a link and a hidden folder get a row that reports them."""
    names = [" lead", "trail ", "a\nb", "grades.csv", os.fsdecode(b"\xff"), "\u202eann"]
    for name in names:
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / STRIDES.file).write_text(stubs.answer_text(STRIDES), encoding="utf-8")
    (tmp_path / "class" / "link").symlink_to(tmp_path / "class" / " lead")
    (tmp_path / "class" / ".hidden").mkdir()
    said = []
    table = grade.grade_all(tmp_path / "class", "1", tmp_path / "out", say=said.append)
    scores = {r["name"]: r.get("score") for r in table}
    assert scores == {submission.label(n): STRIDES.points for n in names} | {"link": None, ".hidden": None}
    assert "this is a link" in "".join(said) and "begins with a dot" in "".join(said)
    rows = [*csv.DictReader((tmp_path / "out" / "grades.csv").open(newline="", encoding="utf-8"))]
    assert len(rows) == 8 and "link" in {r["name"] for r in rows if "not graded" in r["unjudged"]}


class FakeWorker(grade.Worker):
    """Worker whose messages are written by a test."""

    def __init__(self):
        end, self.writes = os.pipe()
        self.process = types.SimpleNamespace(stdout=os.fdopen(end, "rb"), stdin=io.BytesIO())
        self._unread = b""


def test_the_time_limit_restarts_with_each_message(tmp_path, monkeypatch):
    """The time limit restarts with each message, including half a message, however long all exercises take
    together.
    """
    now = [0.0]
    monkeypatch.setattr(grade, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    w = FakeWorker()
    w.give(Path("class/a\nb"))
    assert json.loads(w.process.stdin.getvalue()) == "a\nb" and w.process.stdin.getvalue().count(b"\n") == 1
    for message in (b'{"busy": 1}\n', b'{"bu', b'sy": 1}\n{"busy": 1}\n', b'{"done": "another"}\n{"don'):
        now[0] += grade.SILENCE - 1
        os.write(w.writes, message)
        assert grade._with_news([w]) == [w] and w.read() == "busy" and not w.late
    os.write(w.writes, b'e": "a\\nb"}\n')
    assert w.read() == "done"
    now[0] += grade.SILENCE + 1
    assert w.late and grade._with_news([w]) == [w]
    os.close(w.writes)
    assert w.read() == "ended"


def test_each_exercise_sends_a_message_within_the_time_limit(tmp_path):
    """A judge waits at most PATIENCE * SECONDS for an answer, twice if nobody worked, and KERNEL_SECONDS for a
    kernel.
    """
    from flowedu_course.teach.bench import KERNEL_SECONDS, PATIENCE, SECONDS
    assert max(2 * PATIENCE * SECONDS, KERNEL_SECONDS) < grade.SILENCE
    verdict = Verdict("wrong")
    fake = types.SimpleNamespace(home=course.HOME, judged=lambda *a: verdict)
    holes = [STRIDES, PLACE, DEAD]
    (tmp_path / "ann").mkdir()
    for h in holes[1:]:
        (tmp_path / "ann" / h.file).write_text("x = 1\n")
    signs = []
    grade.graded(fake, tmp_path / "ann", tmp_path / "out", holes, 0, "ann", lambda: signs.append(1))
    assert len(signs) == 2


def test_a_grade_is_reused_for_the_same_seed_answers_and_exercises(tmp_path):
    holes = [PLACE, DEAD]
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / PLACE.file).write_text("x = 1\n")
    verdict = Verdict("wrong")
    fake = types.SimpleNamespace(home=course.HOME, judged=lambda *a: verdict)
    out = tmp_path / "out"
    grade.graded(fake, tmp_path / "ann", out, holes, 5, "ann")
    stands = lambda seed, holes: grade._stands(out, tmp_path / "ann", holes, seed)
    assert stands(5, holes) and not stands(6, holes) and not stands(-5, holes) and not stands(5, holes[:1])
    (tmp_path / "ann" / DEAD.file).write_text("x = 1\n")
    assert not stands(5, holes)


def test_another_seed_grades_a_class_again(tmp_path):
    """grade_all keeps all grades with the same seed, and grades all submissions again with another one."""
    (tmp_path / "class" / "ann").mkdir(parents=True)
    (tmp_path / "class" / "ann" / STRIDES.file).write_text(stubs.answer_text(STRIDES), encoding="utf-8")
    for seed, again in ((1, False), (1, True), (2, False)):
        said = []
        grade.grade_all(tmp_path / "class", "1", tmp_path / "out", seed=seed, say=said.append)
        assert said[0].startswith("1 of 1 were graded before") == again, (seed, said)


# ---- judged in the answer's own process
def test_exercises_judged_in_one_process_are_listed():
    """Exercises are in this list if their values cannot be sent to another process, never because of running
    time.
    """
    assert [h.id for h in course.holes() if h.together] == ["2.7", "3.3", "4.7", "5.4", "6.7", "6.8"]


def test_points_judged_in_the_answers_process_are_marked(tmp_path):
    """The mark is in the table, on the page, and in results.json, and only where points were given."""
    walk = course.find("2.7")
    for state, ids in (("right", "2.7"), ("wrong", "")):
        report.write(tmp_path, [mark(PLACE, "right", 3), mark(walk, state, 0)], "ann")
        row = gradebook.row(tmp_path, "ann")
        assert row["together"] == ids
        gradebook.write_table(tmp_path / "grades.csv", [row], [PLACE, walk])
        assert [r["together"] for r in csv.DictReader((tmp_path / "grades.csv").open(encoding="utf-8"))] == [
            ids]
        text = (tmp_path / "index.html").read_text(encoding="utf-8")
        assert text.count("<td>together</td>") == 1
        words = f"{walk.points} points were judged in the answer's own process: 2.7"
        assert (words in text.replace("&#x27;", "'")) == bool(ids)
        said = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
        assert (words in said["output"]) == bool(ids) and "together" in said["tests"][1]["tags"]


@pytest.mark.slow
def test_a_class(tmp_path):
    """Grade submissions of all kinds; a second run grades only the changed ones."""
    holes = [h for h in course.holes() if h.chapter == 1]
    told = write(tmp_path / "class", holes, 4, seed=3)
    said = []
    table = grade.grade_all(tmp_path / "class", "1", tmp_path / "out", seed=5, say=said.append)
    for row in table:
        for h in holes:
            kind = told[row["name"]][h.id]
            assert row[h.short] == (h.points if kind == "right" else 0), (row, kind)
    assert "4 of 4" in said[-1] and "min left" in said[0]
    rows = [*csv.DictReader((tmp_path / "out" / "grades.csv").open(encoding="utf-8"))]
    assert [r["name"] for r in rows] == sorted(told) and float(rows[0]["score"]) == table[0]["score"]
    changed = tmp_path / "class" / "student-002" / holes[0].file
    changed.write_text("def row_major(shape):\n    return 7\n")
    said.clear()
    assert grade.grade_all(tmp_path / "class", "1", tmp_path / "out", seed=5,
                           say=said.append)[2][holes[0].short] == 0
    assert said[0].startswith("3 of 4 were graded before") and len(said) == 2


@pytest.mark.slow
def test_a_crashed_grader_affects_only_its_submission(tmp_path, monkeypatch):
    """The submission is graded once more, then reported as failed; the others get their grades."""
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
    assert "by hand" in json.loads((tmp_path / "out" / "student-001"
                                    / "results.json").read_text("utf-8"))["output"]
    assert Path(tmp_path / "out" / "student-002" / "index.html").exists()
