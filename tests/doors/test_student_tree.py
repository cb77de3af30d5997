"""Round trips through an exported tree: every exercise can be started, checked, asked for hints, and passed.
Commands run in separate processes, as a student types them.
"""
import json
import re
import shutil

import pytest
from student import HOLES, LAST, answered, handed_out, learn, run_in_home

from common import few
from flowedu_course import course, kernels
from flowedu_course.handout import stub
from flowedu_course.runner import Runner
from flowedu_course.teach import solutions

# A law, an exercise with a stand-in, one that the library cannot run without, a kernel of the library, and a
# kernel of the course.
SOME = ["1.1", "4.4", "1.2", "8.3", "8.5"]


def judged(home, ids, folder="work"):
    """Judge the files in a folder in one process; return {id: verdict}."""
    code = ("import json, sys; from pathlib import Path; from flowedu_course import course, judge\n"
            "holes = [course.find(i) for i in sys.argv[2:]]\n"
            "print(json.dumps({h.id: vars(judge.judged(h, Path(sys.argv[1], h.file).resolve())) for h in "
            "holes}))")
    simulated = {"FLOWEDU_CUDA": "sim"} if any(course.find(i).file.endswith(".cu") for i in ids) else {}
    done = run_in_home(home, "-c", code, folder, *ids, **simulated)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Export the tree of the whole course and start every exercise."""
    home, chapters = handed_out(tmp_path_factory.mktemp("trip")), [c for c in course.chapters() if c.holes]
    for c, (rc, said) in zip(chapters, learn(home, *(f"start {c.number}" for c in chapters))):
        assert rc == 0 and f"chapter {c.number}: {len(c.holes)} exercises in work/" in said, said
    return home


@pytest.mark.slow
def test_every_exercise_can_be_begun(whole):
    """Its stub is made from the tree's files and equals that of the whole library, including the list of
    prerequisites. The command that runs a hunt's program in a tree also installs the answers.
    """
    for hole in HOLES:
        text = (whole / "work" / hole.file).read_text(encoding="utf-8")
        first = re.search(r"^after  (.*): the laws call their functions", text, re.MULTILINE)
        assert (tuple(first[1].split(", ")) if first else ()) == hole.needs
        if first:
            text = text.replace(f"{first[0]}, which are open here\n", "").replace("FLOWEDU_HOLES=work ", "")
        assert text == stub(hole), hole.id


def test_the_order_of_the_course_is_one_in_which_it_can_be_done():
    """The prerequisites of an exercise, and their prerequisites, come before it; the library's own tree has
    no open exercise.
    """
    for n, hole in enumerate(HOLES):
        before = {h.id: h for h in HOLES[:n]}
        assert set(hole.needs) <= set(before) and not hole.first, hole.id
        assert all(set(before[i].needs) <= set(hole.needs) for i in hole.needs), hole.id


@pytest.mark.slow
def test_prerequisites_are_reported(whole):
    """Prerequisites are listed by `list`, by `start`, by a check that fails, and by a check of an exercise
    that is not begun.
    """
    there = answered(whole, [course.find("8.3")], right=["1.1"], folder="first")
    listed, begun, checked, untouched = learn(whole, f"list {there}", f"start 8 {there}",
                                              f"check 8.3 {there}", "check 8.3")
    assert re.search(r"8\.3 .* after 1\.3 1\.5$", listed[1], re.MULTILINE), listed
    assert re.search(r"8\.6 .* points$", listed[1], re.MULTILINE)
    assert "some of them need 1.3, 1.5, 2.2 first (" in begun[1]
    for rc, said in (checked, untouched):
        assert rc == 1 and re.search(r"do first    (1\.1, )?1\.3, 1\.5: the laws call their functions",
                                     said), said
    assert "not begun" in untouched[1]


def test_a_stub_is_never_shown_as_the_librarys_code(whole):
    """`make solution` shows the library's code or reports that the tree was exported without it."""
    runner, shown = Runner(course.HOME, whole / "nowhere"), set()
    for hole, (rc, said) in zip(HOLES, learn(whole, *(f"solution {h.id} --force" for h in HOLES)),
                                strict=True):
        if "does not include" in said:
            assert rc == 0 and said.strip().count("\n") == 1, said
        else:
            assert said.strip().splitlines() == runner.solution(hole, force=True), hole.id
            shown.add(hole.language)
    assert shown == {"kernel"}                        # the library is built from these


@pytest.mark.slow
def test_answers_are_handed_out_by_chapter(whole, capsys):
    """Answers in the tree are shown after passing, are offered, and are right; those of later chapters are
    not included.
    """
    out = whole / course.SOLUTIONS
    try:
        assert (solutions.main(["3", str(out)]) == 0
                and "answers of chapters 1 to 3" in capsys.readouterr().out)
        assert {f.name for f in out.iterdir()} == {h.file for h in HOLES if h.chapter <= 3}
        assert solutions.main(["3", str(out)]) == 2 and "not empty" in capsys.readouterr().err
        there = answered(whole, [course.find("1.1")], folder="shown")
        before, passed, shown, later = learn(whole, f"solution 1.1 {there}", f"check 1.1 {there}",
                                             f"solution 1.1 {there}", f"solution 4.3 --force {there}")
        assert ("FORCE=1" in before[1] and "`make solution EX=1.1`" in passed[1]
                and "does not include" in later[1])
        assert shown[1].startswith("# solutions/1.1_strides.py") and "def row_major" in shown[1]
        assert "your turn" not in shown[1]
        right = judged(whole, ["1.1", "2.3", "3.5"], course.SOLUTIONS)
        assert {v["state"] for v in right.values()} == {"right"}, right
    finally:
        shutil.rmtree(out)


def test_answers_of_some_exercises(tmp_path, capsys):
    """Export answers that include kernels; an unknown chapter or exercise is refused."""
    assert solutions.main(["8", str(tmp_path / "a"), "--only", "4.3", "8.3", "8.7"]) == 0
    assert sorted(f.suffix for f in (tmp_path / "a").iterdir()) == [".cu", ".py", ".pyx"]
    for wrong, words in ((["99", "b"], "no chapter 99"), (["2", "b", "--only", "4.3"],
                                                          "exercise or chapter 4.3")):
        assert (solutions.main([wrong[0], str(tmp_path / wrong[1]), *wrong[2:]]) == 2
                and words in capsys.readouterr().err)
        assert not (tmp_path / "b").exists()


def planted(home, hole, into):
    """Judge a right answer while the answer of another exercise (`into`) raises in its second line."""
    folder = f"planted-{hole.id}-{into.id}"
    answered(home, [hole, *map(course.find, hole.needs)], right={*hole.needs, into.id}, folder=folder)
    names = (f"def {name}(*args, **named):\n    raise IndexError('planted')\n" for name in into.functions)
    (home / folder / into.file).write_text("\n".join(names), encoding="utf-8")
    return judged(home, [hole.id], folder)[hole.id]


def test_an_exception_in_another_answer_is_reported_at_its_line(whole):
    verdict = planted(whole, course.find("4.3"), course.find("4.2"))
    assert verdict["state"] == "wrong" and verdict["lines"][-2:] == [
        "  IndexError: planted",
        "  in your 4.2_the_bound.py, line 2      raise IndexError('planted')"], verdict


@pytest.mark.slow
@pytest.mark.parametrize("hole", [h for h in HOLES if h.needs], ids=lambda h: h.id)
def test_the_answer_that_raises_is_named(whole, hole):
    told = 0
    for into in map(course.find, hole.needs):
        lines = "\n".join(planted(whole, hole, into)["lines"])
        named = (f"in your {into.file}, line " in lines
                 or f"SystemExit: {into.file}: IndexError: planted" in lines)
        told += named                                 # a field that is a list is read before any answer runs
        assert "IndexError" not in lines or named, (into.id, lines)
    assert told


STUBS_LEFT = """
import importlib, pkgutil, sys, types
import flowedu
from flowedu.core.ops.define import REGISTRY
for m in pkgutil.walk_packages(flowedu.__path__, "flowedu."):
    if m.name in HELD:
        importlib.import_module(m.name)

def names(code):
    return [*code.co_names, *(n for c in code.co_consts if isinstance(c, types.CodeType) for n in names(c))]

seen, todo = set(), []
for name, m in [*sys.modules.items()]:
    if name.startswith("flowedu"):
        todo += [v for n, v in vars(m).items() if not n.startswith("_")]
todo += [x for op in REGISTRY.values() for x in op.made]
while todo:
    x = todo.pop()
    if id(x) in seen:
        continue
    seen.add(id(x))
    if isinstance(x, types.FunctionType):
        for t in x.__code__.co_consts:
            if isinstance(t, str) and t.endswith(": your turn") and t[0].isdigit():        # "4.3: your turn"
                print(t, x.__module__, x.__qualname__)
        todo += [*(x.__defaults__ or ()), *vars(x).values(),
                 *(x.__globals__.get(n) for n in names(x.__code__))]
        todo += [c.cell_contents for c in x.__closure__ or () if c != types.CellType()]
    elif isinstance(x, type) and x.__module__.startswith("flowedu"):
        todo += vars(x).values()
    elif isinstance(x, (tuple, list)):
        todo += x
    elif isinstance(x, dict):
        todo += x.values()
    else:
        todo += [f for f in (getattr(x, n, None) for n in ("__func__", "fget", "__wrapped__", "func"))
                 if f is not None]
"""


@pytest.mark.slow
def test_answers_replace_every_stub(whole):
    """A stub that code other than the exercise's object runs is also replaced by its answer."""
    answered(whole, [h for h in HOLES if not h.is_separate], folder="answers")
    held = f"HELD = {sorted({h.module for h in HOLES if not h.is_separate})}"
    (whole / "empty").mkdir(exist_ok=True)
    assert "your turn" in run_in_home(whole, "-c", held + STUBS_LEFT, FLOWEDU_HOLES="empty").stdout
    assert run_in_home(whole, "-c", held + STUBS_LEFT, FLOWEDU_HOLES="answers").stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("id", few(SOME, lambda id: id == "4.4"))
def test_from_the_first_check_to_the_last(whole, id):
    """Run check and hint, then check a right answer; solutions that are not in the tree are not offered."""
    hole = course.find(id)
    there = answered(whole, [hole, *map(course.find, hole.needs)], right=hole.needs, folder=f"trip-{id}")
    first, hint, last = learn(whole, f"check {id}", f"hint {id}", f"check {id} {there}")
    assert re.search("not yet better" if hole.stub and hole.kind != "kernel" else "not begun",
                     first[1]), first
    assert "hint 1 of 3" in hint[1]
    assert last[0] == 0 and "right" in last[1] and ("make solution" in last[1]) == (id == "8.3"), last


def in_cuda(*holes) -> bool:
    return any(h.language == "cuda" for h in holes)


@pytest.mark.parametrize("hole", few(HOLES, lambda h: False, simulated=in_cuda), ids=lambda h: h.id)
def test_listed_prerequisites_are_sufficient(whole, hole):
    """With the answers of its prerequisites only, an exercise can be passed, and a target can get all its
    stars.
    """
    answered(whole, [hole, *map(course.find, hole.needs)], right=hole.needs, folder="needs-" + hole.id)
    verdict = judged(whole, [hole.id], "needs-" + hole.id)[hole.id]
    assert verdict["state"] == "right" and verdict["stars"] >= min(1, len(hole.stars)), verdict


@pytest.mark.parametrize("chapter", few([c for c in course.chapters() if c.milestone], lambda c: False,
                                        simulated=lambda c: in_cuda(*map(course.find, c.milestone.needs))),
                         ids=lambda c: c.folder.name)
def test_a_milestone_runs_on_right_answers(whole, chapter):
    """A milestone runs with the exercises it names and those of earlier chapters; without the latter it names
    the open one.
    """
    needs = [course.find(i) for i in chapter.milestone.needs]
    before = [h for h in HOLES if h.chapter < chapter.number]
    for some in ([], before) if before else ([],):
        right = [h.id for h in {*some, *(course.find(i) for h in needs for i in h.needs)}]
        there = answered(whole, [*needs, *map(course.find, right)], right=right,
                         folder=f"milestone-{chapter.number}")
        done = run_in_home(whole, "-m", "flowedu_course", "milestone", str(chapter.number), *there.split())
        told = not some and re.search(r"the program also needs exercise \d\.\d+, which is open", done.stdout)
        assert done.returncode == 0 or told, done
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("upto", range(1, LAST + 1))
def test_a_tree_is_worked_through(tmp_path, upto):
    """Start all exercises, none of which is right; then answer all of them, all right."""
    home, mine = handed_out(tmp_path, upto), [h for h in HOLES if h.chapter <= upto]
    learn(home, *(f"start {c.number}" for c in course.chapters() if c.number <= upto))
    for id, verdict in judged(home, [h.id for h in mine]).items():
        h = course.find(id)
        if h.needs and "  do " in "".join(verdict["lines"]):
            # Without the answer of a target, an exercise that it measures is not judged.
            state = "open" if any(course.find(i).kind == "target" for i in h.needs) else "wrong"
            assert h.stub and h.kind != "kernel" and verdict["state"] == state, (id, verdict)
        else:
            assert (verdict["state"], verdict["stars"]) == ("open", 0), (id, verdict)
    answered(home, mine)
    here = [h for h in mine if not kernels.missing(h)]
    *checks, listed = learn(home, *(f"check {h.id}" for h in here), "list")
    for hole, (rc, said) in zip(here, checks, strict=True):
        assert rc == 0 and f"{hole.short}" in said and "right" in said, said
    assert re.findall(r"\[([ x])\] (\d\.h?\d+)", listed[1]) == [(" ", h.id) for h in mine if h not in here]
