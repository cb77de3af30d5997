"""Round trips through a tree that is handed out: in it every exercise can be begun, asked about, checked and passed. What is
typed there runs as a student types it, in processes of its own."""
import json
import os
import re
import subprocess
import sys

import pytest

from common import HANGS
from flowedu.learn import authors, course, kernels, progress
from flowedu.learn.judge import stub
from flowedu.learn.runner import Runner
from flowedu.learn.teach import blanks, tree

HOLES = course.holes()
LAST = course.chapters()[-1].number
# One of each kind: a law, one with a stand-in, one that the library cannot do without, a field of a record, a line of C, a
# kernel of the library's, one of the course's own.
SOME = ["1.1", "4.4", next(h.id for h in HOLES if h.plain), "2.6", "8.1", "8.3", "8.5"]


def handed_out(folder, upto=LAST):
    """A tree with what was compiled, so that nothing is compiled again."""
    return tree.export(folder / "handout", upto, built=True).folder


def inside(home, *arguments, **environment):
    env = {**os.environ, "PYTHONPATH": str(home / "src"), "FLOWEDU_NUM_THREADS": "1", **environment}
    env.pop("FLOWEDU_HOLES", None) if "FLOWEDU_HOLES" not in environment else None
    return subprocess.run([sys.executable, *arguments], cwd=home, capture_output=True, text=True, timeout=HANGS, env=env)


def learn(home, *arguments, rc=0, **environment):
    done = inside(home, "-m", "flowedu.learn", *arguments, **environment)
    assert done.returncode == rc and "Traceback" not in done.stderr, (arguments, done.stdout, done.stderr)
    return done.stdout + done.stderr


def answer_of(hole):
    """What an instructor would write into the work file."""
    return authors.library(hole) if hole.kind == "kernel" else blanks.answer_text(hole)


def answered(home, holes):
    (home / "work").mkdir(exist_ok=True)
    for hole in holes:
        (home / "work" / hole.file).write_text(answer_of(hole))


def right(home, ids):
    """These are noted as right, all others as not begun."""
    rows = {i: {**progress.EMPTY, "state": "right"} for i in ids}
    (home / "work" / ".course.json").write_text(json.dumps({"version": progress.VERSION, "holes": rows}))


def judged(home, ids):
    """{id: verdict} of the work files in a tree, in one process."""
    code = ("import json, sys; from pathlib import Path; from flowedu.learn import course, judge\n"
            "holes = [course.find(i) for i in sys.argv[1:]]\n"
            "print(json.dumps({h.id: judge.judged(h, Path('work', h.file).resolve()) for h in holes}))")
    done = inside(home, "-c", code, *ids)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The tree of the whole course, every exercise begun."""
    home = handed_out(tmp_path_factory.mktemp("trip"))
    for c in course.chapters():
        if c.holes:
            assert f"chapter {c.number}: {len(c.holes)} exercises in work/" in learn(home, "start", str(c.number))
    return home


def test_every_exercise_can_be_begun(whole):
    """Its stub is made of what the tree has; it says what the whole library's says."""
    for hole in HOLES:
        text = (whole / "work" / hole.file).read_text()
        first = re.search(r"^after  (.*): its laws run them", text, re.MULTILINE)
        assert (tuple(first[1].split(", ")) if first else ()) == hole.needs
        assert text.replace(f"{first[0]}, and here they are open\n" if first else "", "") == stub(hole), hole.id


def test_the_order_of_the_course_is_one_in_which_it_can_be_done():
    """What an exercise needs stands before it, and so does what that needs; in the library's own tree nothing is open."""
    for n, hole in enumerate(HOLES):
        before = {h.id: h for h in HOLES[:n]}
        assert set(hole.needs) <= set(before) and not hole.first, hole.id
        assert all(set(before[i].needs) <= set(hole.needs) for i in hole.needs), hole.id


def test_what_comes_first_is_told(whole):
    """By the list, by `start`, and by a check that fails."""
    hole = course.find("8.3")
    right(whole, ["1.1"])
    assert re.search(r"8\.3 .* after 1\.3 1\.5$", listed := learn(whole, "list"), re.MULTILINE), listed
    assert re.search(r"8\.6 .* points$", listed, re.MULTILINE)
    assert "some of them run 1.3, 1.5, 2.2, which come first (" in learn(whole, "start", "8")
    before = (whole / "work" / hole.file).read_text()
    try:
        answered(whole, [hole])
        assert "before it   1.3, 1.5: what its laws run is open in this tree" in learn(whole, "check", "8.3", rc=1)
    finally:
        (whole / "work" / hole.file).write_text(before)
        right(whole, [])


def test_no_stub_is_shown_as_the_librarys_lines(whole):
    """`make solution` shows what the library has, or says that the tree was handed out without it; nothing offers it then."""
    code = ("import sys; from flowedu.learn import course, runner\n"
            "for h in course.holes(): print('====', h.withheld, flush=True) or runner.main(['solution', h.id, '--force'])")
    parts = inside(whole, "-c", code).stdout.split("==== ")[1:]
    runner = Runner(course.HOME, whole / "work")
    assert len(parts) == len(HOLES)
    for hole, said in zip(HOLES, parts):
        withheld, _, said = said.partition("\n")
        if withheld == "True":
            assert "handed out without them" in said and said.count("\n") == 2, said
        else:
            assert said.splitlines() == runner.solution(hole, force=True), hole.id
    assert {h.language for h, said in zip(HOLES, parts) if not said.startswith("True")} == {"kernel", "cuda"}


@pytest.mark.parametrize("id", SOME)
def test_from_the_first_check_to_the_last(whole, id):
    """Check, hint, an answer, check."""
    hole = course.find(id)
    assert re.search("not begun|right. 0 of", learn(whole, "check", id, rc=0 if hole.stub and hole.kind != "kernel" else 1))
    assert "hint 1 of 3" in learn(whole, "hint", id)
    file = whole / "work" / hole.file
    before = file.read_text()
    try:
        answered(whole, [hole, *map(course.find, hole.needs)])
        right(whole, hole.needs)
        said = learn(whole, "check", id)
        assert "right" in said and ("make solution" in said) == (id == "8.3")
    finally:
        file.write_text(before)


@pytest.mark.slow
@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_what_it_says_it_needs_is_all_it_needs(whole, hole):
    """With the answers of those, and of no others, it can be passed, and a target can have all its stars."""
    if kernels.missing(hole):
        pytest.skip(kernels.missing(hole))
    answered(whole, [hole, *map(course.find, hole.needs)])
    right(whole, hole.needs)
    verdict = judged(whole, [hole.id])[hole.id]
    assert verdict["state"] == "right" and verdict["stars"] >= min(1, len(hole.stars)), verdict


@pytest.mark.slow
@pytest.mark.parametrize("upto", range(1, LAST + 1))
def test_a_tree_is_worked_through(tmp_path, upto):
    """All exercises begun, none right; all answered, all right."""
    home, mine = handed_out(tmp_path, upto), [h for h in HOLES if h.chapter <= upto]
    for number in {h.chapter for h in mine}:
        learn(home, "start", str(number))
    for id, verdict in judged(home, [h.id for h in mine]).items():
        stand_in = (h := course.find(id)).stub and h.kind != "kernel"
        assert (verdict["state"], verdict["stars"]) == (("right" if stand_in else "open"), 0), (id, verdict)
    answered(home, mine)
    for hole in mine:
        if not kernels.missing(hole):
            assert "right" in learn(home, "check", hole.id), hole.id
    assert re.findall(r"\[[ x]\] (\d\.\d+)", learn(home, "list")) == [h.id for h in mine if kernels.missing(h)]
