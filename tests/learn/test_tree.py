"""The exported tree: it works by itself, its exercises are open, and it contains no line of an answer."""
import ast
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import typing

import pytest

from common import HANGS, few
from flowedu.errors import ArgumentError
from flowedu_course import course
from flowedu_course.blocks import blocks
from flowedu_course.handout import PARTS_OF_ANSWERS, describe_stubs, stub
from flowedu_course.language import spans
from flowedu_course.left_out import turn
from flowedu_course.teach import stubs, tree

HOLES = [h for h in course.holes() if not h.is_separate]
PLAN = "chapters/04_job_functions/plan.md"
# A recorded output that names its block, so that a block with another block's output is found.
RECORDED = {"04_job_functions": {"plan": [f"recorded for line {b.line}\nsecond line\n" for b in blocks(
    (course.HOME / PLAN).read_text(encoding="utf-8")) if b.language == "python"]}}


@pytest.fixture(scope="module", ids=["open", "closed"],
                params=[pytest.param(False, marks=pytest.mark.slow), True])
def handout(request, tmp_path_factory):
    made = tree.export(tmp_path_factory.mktemp("made") / "handout", 4, closed=request.param, built=True,
                       recorded=RECORDED)
    return made, request.param


def inside(folder, *arguments, **environment):
    paths = os.pathsep.join(str(folder / part) for part in ("src", "course"))
    env = {**os.environ, "PYTHONPATH": paths, "FLOWEDU_NUM_THREADS": "1", "COLUMNS": "200", **environment}
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True,
                          encoding="utf-8", timeout=HANGS, env=env)


def learn(folder, *arguments):
    done = inside(folder, "-m", "flowedu_course", *arguments)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def test_the_tree_has_stubs_and_no_answers(handout):
    made, closed = handout
    assert made.found == []
    files = [f for part in ("src", "course") for f in (made.folder / part).rglob("*.py")]
    marked = {t.split()[-1] for f in files for t in f.read_text("utf-8").splitlines()
              if "# BEGIN YOUR TURN" in t}
    assert marked == {h.id for h in HOLES if closed or h.chapter <= 4}
    names = {str(p.relative_to(made.folder)) for p in made.folder.rglob("*")}
    for gone in ("wrong", "right", "alternatives.py", "solutions.py", "exam_answers.md", "mutants",
                 "mutants.toml", "teach", "authors.py", ".git", "tests"):
        assert not [n for n in names if gone in n.split("/")], gone
    assert {"Makefile", "chapters/exam.md", "student.json", ".github/workflows/exercises.yml"} <= names
    assert [c.number for c in course.chapters(made.folder)] == [c.number for c in course.chapters()
                                                                if c.number <= 4]


@pytest.mark.slow
def test_the_exported_tree_works_by_itself(handout):
    """Start exercises, check a right answer and one that needs an earlier one, get stars from stored figures,
    and run lessons.
    """
    folder = handout[0].folder
    assert ("exercises in work/" in learn(folder, "start",
                                          "1") and "exercises in" in learn(folder, "start", "4"))
    assert "not begun" in learn(folder, "check", "1.1")
    first = course.find("1.1")
    (folder / "work" / first.file).write_text(stubs.answer_text(first), encoding="utf-8")
    assert "right" in learn(folder, "check", "1.1")
    said = learn(folder, "check", "4.3")
    assert "not yet better than the initial code" in said and "bound" in said
    place = course.find("4.3")
    (folder / "work" / place.file).write_text(stubs.answer_text(place), encoding="utf-8")
    assert "*" in learn(folder, "check", "4.3")
    lesson = inside(folder, "-m", "flowedu_course.lesson", "chapters/01_blob/README.md", FLOWEDU_HOLES="work")
    assert (lesson.returncode == 0
            and "left out: it needs exercise 1.3, which is open" in lesson.stdout), lesson.stdout
    assert "needs exercise 1.1" not in lesson.stdout


@pytest.mark.slow
def test_an_unchanged_stand_in_is_not_right(handout):
    """The stand-in of an exercise fails a law, or the check asks for another method."""
    folder = handout[0].folder
    for hole in (h for h in HOLES if h.plain and h.chapter <= 4):
        learn(folder, "start", str(hole.chapter))
        (folder / "work" / hole.file).write_text((hole.folder / hole.plain).read_text(encoding="utf-8"),
                                                 encoding="utf-8")
        words = "it visits every buffer at every step" if hole.id == "4.2" else "use another method"
        assert words in learn(folder, "check", hole.id)


@pytest.mark.slow
def test_with_all_answers_the_lessons_run(tmp_path):
    made = tree.export(tmp_path / "handout", 2, built=True)
    work = made.folder / "work"
    work.mkdir()
    for hole in (h for h in HOLES if h.chapter <= 2):
        (work / hole.file).write_text(stubs.answer_text(hole), encoding="utf-8")
    for chapter in ("01_blob", "02_ops"):
        done = inside(made.folder, "-m", "flowedu_course.lesson", f"chapters/{chapter}/README.md",
                      FLOWEDU_HOLES="work")
        assert (done.returncode == 0
                and "left out" not in done.stdout), done.stdout[-2000:] + done.stderr[-2000:]


def test_only_requested_exercises_are_open(tmp_path, capsys):
    out = tmp_path / "handout"
    assert tree.main(["8", str(out), "--only", "4.3", "8"]) == 0 and "open 4.3 8" in capsys.readouterr().out
    text = "\n".join(f.read_text(encoding="utf-8") for f in (out / "src").rglob("*.py"))
    marked = {t.split()[-1] for t in text.splitlines() if "# BEGIN YOUR TURN" in t}
    assert marked == {"4.3"} and {h.id for h in course.holes(out)} == {h.id for h in course.holes()}
    assert [h.id for h in course.holes(out) if h.first] == ["5.3", "5.4"]            # these run 4.3
    assert tree.main(["4", str(tmp_path / "other"), "--only", "5.1"]) == 2
    assert "exercise or chapter 5.1" in capsys.readouterr().err


def test_a_line_of_an_answer_is_found(tmp_path):
    own = stubs.own_lines(HOLES)
    line = next(t for t, i in own.items() if i == "4.3")
    assert len(own) > 50 and all(len(t) > stubs.LONG for t in own)
    (tmp_path / "page.md").write_text(f"some text\n    {line}\n", encoding="utf-8")
    (tmp_path / "some.bin").write_bytes(b"\x00" + max(own, key=len).encode() + b"\x00")
    assert len([*tree.answers_in(tmp_path, own)]) == 2


def test_impossible_exports_are_refused(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    for out, upto, words in ((tmp_path / "full", 4, "not empty"), (tmp_path / "new", 99, "no chapter 99"),
                             (course.HOME / "src" / "new", 4, "inside the tree")):
        with pytest.raises(ArgumentError, match=words):
            tree.export(out, upto)
    assert tree.main(["99", str(tmp_path / "new")]) == 2 and not (tmp_path / "new").exists()


@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_a_file_with_an_exercise_differs_only_there(hole):
    for file, text in stubs.blank({}, [hole]).items():
        ast.parse(text)
        lines = text.splitlines()
        inside, outside = 0, []
        for t in lines:
            inside += "BEGIN YOUR TURN" in t
            if not inside:
                outside.append(t)
            inside -= "END YOUR TURN" in t
        before = file.read_text(encoding="utf-8").splitlines()
        assert inside == 0 and len(outside) <= len(before) + 6
        assert sum(t not in before for t in outside) <= len(hole.objects), hole.id  # the line of a lambda


def test_sources_that_are_not_python():
    text = "a\n  // BEGIN SOLUTION 8.9\n  x = 1;\n  // END SOLUTION 8.9\nb\n"
    assert stubs.without_marked(text, {"8.9"}) == "a\n  // BEGIN YOUR TURN 8.9\n  // END YOUR TURN 8.9\nb\n"
    assert stubs.without_marked(text, {"8.8"}) == text


def test_the_workflow_has_a_step_for_each_hole(handout):
    text = (handout[0].folder / ".github/workflows/exercises.yml").read_text(encoding="utf-8")
    for hole in (h for h in HOLES if h.chapter <= 4):
        assert (f"run: make -s check EX={hole.id}\n" in text
                and f'"{hole.short} ({hole.points} points)"' in text)
    assert "5.1" not in text and "\t" not in text and course.file_of("flowedu")


@pytest.mark.parametrize("closed", few([False, True], lambda closed: False))
def test_the_whole_course_is_exported_without_answers(tmp_path, closed):
    """The tree of the whole course, which includes kernels, has their stubs and not their answers."""
    made = tree.export(tmp_path / "handout", course.chapters()[-1].number, closed=closed)
    there = {p.name for p in (made.folder / "chapters" / "08_kernels").iterdir()}
    assert not made.found and "stubs" in there and not there & {"answers", "wrong"}
    figures = json.loads((made.folder / "student.json").read_text(encoding="utf-8"))["figures"]
    assert {h.id for h in course.holes() if h.stars and not h.is_separate} == set(figures)


# ---- kernels that come with the tree
def compiled_files(folder):
    return {p: p.stat().st_mtime_ns for p in (folder / "src").rglob("*.so")}


def build(folder, *command):
    """Run a command in a folder in which every call of a compiler fails."""
    return subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, encoding="utf-8",
                          timeout=HANGS, env={**os.environ, "CC": "false", "FLOWEDU_BUILD_ISA": "native"})


BUILD = ("setup.py", "-q", "build_ext", "--inplace")


def test_the_kernels_of_a_tree_are_used_without_a_compiler(handout):
    """setup.py compiles nothing until a source, or a compiled file, has other contents."""
    folder = handout[0].folder
    before = compiled_files(folder)
    done = build(folder, *BUILD)
    assert done.returncode == 0 and before and compiled_files(folder) == before, done.stderr
    asked = build(folder, "tools/handed_kernels.py", "native")
    assert asked.returncode == 0 and "came with this tree" in asked.stdout
    for changed in (folder / "src/flowedu/_kernels/ops/philox.h", min(before)):
        data = changed.read_bytes()
        changed.write_bytes(data + b"\n")
        try:
            assert build(folder, "tools/handed_kernels.py", "native").returncode == 1
            assert "the C compiler cannot build a program" in build(folder, *BUILD).stderr
        finally:
            changed.write_bytes(data)
    assert build(folder, "tools/handed_kernels.py", "native").returncode == 0
    assert build(course.HOME, "tools/handed_kernels.py", "native").returncode == 1       # no student tree


@pytest.mark.slow
def test_a_tree_is_linked_without_a_compiler(handout, tmp_path):
    done = build(handout[0].folder, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps",
                 "--no-build-isolation", "--target", str(tmp_path / "there"), "-e", ".")
    assert done.returncode == 0, done.stderr


# ---- lessons of an open tree
def test_a_block_that_needs_an_open_exercise_shows_its_recorded_output(handout):
    folder = handout[0].folder
    (folder / "empty").mkdir(exist_ok=True)
    said = inside(folder, "-m", "flowedu_course.lesson", PLAN, FLOWEDU_HOLES="empty").stdout
    left = re.findall(r"plan\.md:(\d+): left out: it needs exercise [\d.]+, which is open\n"
                      r"  > \(recorded with the library's own code:\)\n  > recorded for line (\d+)\n"
                      r"  > second line\n", said)
    assert left and said.count(": left out: ") == len(left) and all(a == b for a, b in left), said
    assert "expected output" not in said


def test_recorded_outputs_contain_no_answer(tmp_path):
    line = next(t for t, i in stubs.own_lines(HOLES).items() if i == "4.3")
    recorded = {"04_job_functions": {"plan": [f"a\n  {line}\n", "b\n"]}}
    made = tree.export(tmp_path / "handout", 4, recorded=recorded)
    stored = json.loads((made.folder / "chapters/04_job_functions/recorded.json").read_text(encoding="utf-8"))
    assert stored == {"plan": [None, "b\n"]} and not made.found


def first_line(folder, work):
    code = "from flowedu_course.left_out import describe_code; print(describe_code())"
    return inside(folder, "-c", code, FLOWEDU_HOLES=work).stdout.strip()


def test_answers_in_solutions_run_in_lessons_and_checks(tmp_path):
    """The first line of a lesson lists the student's answers, those of solutions/, and open exercises."""
    folder = tree.export(tmp_path / "handout", 2, built=True).folder
    open_ones = [h for h in HOLES if h.chapter <= 2]
    (folder / "work").mkdir()
    assert first_line(folder, "work") == "open: 1.1-1.5, 2.1-2.9; all else is the library's"
    learn(folder, "start", "1")
    assert "do first    1.1" in learn(folder, "check", "1.5")
    (folder / course.SOLUTIONS).mkdir()
    for hole in open_ones:
        (folder / course.SOLUTIONS / hole.file).write_text(stubs.answer_text(hole), encoding="utf-8")
    mine = course.find("1.3")
    (folder / "work" / mine.file).write_text(stubs.answer_text(mine), encoding="utf-8")
    theirs = "from solutions/: 1.1, 1.2, 1.4, 1.5, 2.1-2.9"
    assert first_line(folder, "work") == f"yours: 1.3; {theirs}; all else is the library's"
    assert "do first" not in learn(folder, "check", "1.5")
    lesson = inside(folder, "-m", "flowedu_course.lesson", "chapters/02_ops/README.md", FLOWEDU_HOLES="work")
    assert lesson.returncode == 0 and "left out" not in lesson.stdout, lesson.stdout


# ---- work files
def test_spans_of_exercises():
    assert spans(["2.h2", "2.1", "1.3", "1.1", "1.2", "1.10", "1.9"]) == "1.1-1.3, 1.9, 1.10, 2.1, 2.h2"
    assert spans(["2.h1", "2.2", "2.h2", "2.h3", "2.2"]) == "2.2, 2.h1-2.h3" and spans([]) == ""


@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_every_name_of_a_work_file_is_known_to_an_editor(hole, monkeypatch):
    """Its imports name what the answer gets when it runs: all available names that are no part of the answer,
    and all names of the stub.
    """
    monkeypatch.setattr(typing, "TYPE_CHECKING", True)
    text, space = stub(hole), {}
    exec(compile(text, hole.file, "exec", dont_inherit=True), space)
    module = vars(importlib.import_module(hole.module))
    assert {*hole.at_hand} - PARTS_OF_ANSWERS <= {*space}
    # Other tests may have wrapped functions of the module, for better errors.
    assert [n for n in space if n in module and n in hole.at_hand
            and inspect.unwrap(space[n]) is not inspect.unwrap(module[n])] == []
    known = {*space, *dir(__builtins__), *dir(__import__("builtins"))}
    for f in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)):
        local = {n.arg for n in ast.walk(f) if isinstance(n, ast.arg)} | {
            n.id for n in ast.walk(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} | {
            n.name for n in ast.walk(f) if isinstance(n, ast.FunctionDef)} | {
            n.asname or n.name for n in ast.walk(f) if isinstance(n, ast.alias)}
        used = {n.id for n in ast.walk(f) if isinstance(n, ast.Name)}
        assert used <= known | local, used - known - local


def test_the_description_of_initial_files_is_true():
    """A function that raises raises, and one that does not is right but wasteful."""
    raising, wasteful, kernels, hunts = ([], [], [], [])
    for hole in course.holes():
        (kernels if hole.kind == "kernel" else hunts if hole.is_hunt else raising if "your turn" in stub(hole)
         else wasteful).append(hole.id)
    assert describe_stubs(course.holes())[1:] == [
        f"  a function that raises NotImplementedError: {spans(raising)}",
        f"  a right but wasteful function, to be improved: {spans(wasteful)}",
        f"  a kernel without its loops: {spans(kernels)}",
        f"  a program or kernel with one fault: {spans(hunts)}"]
    assert {h.kind for h in HOLES if h.id in wasteful} == {"target"}


def test_an_editor_finds_the_library_and_the_work_files(handout):
    settings = json.loads((handout[0].folder / ".vscode/settings.json").read_text(encoding="utf-8"))
    assert settings["python.defaultInterpreterPath"].endswith("/.venv/bin/python")
    assert settings["python.analysis.include"] == ["work"]
    assert all((handout[0].folder / path).is_dir() for path in settings["python.analysis.extraPaths"])


# ---- texts of a tree
NAMED = re.compile(r"`((?:src|course|chapters|tests|docs|book|tools|benchmarks|\.github)/[\w./-]*)`")


def test_paths_in_lessons_exist_in_a_tree(handout):
    folder = handout[0].folder
    pages = [*(folder / "chapters").rglob("*.md"), *folder.glob("README*.md"), folder / "AGENTS.md"]
    pages = [p for p in pages if p.name != "syllabus.md"]         # instructors have the whole checkout
    named = {(path, p.relative_to(folder)) for p in pages for path in NAMED.findall(p.read_text("utf-8"))}
    assert len(named) > 100 and not sorted(n for n in named if not (folder / n[0]).exists())


COMMAND = re.compile(r"`?(make [a-z-]+)")


def test_commands_of_instructors_are_refused(handout):
    """The Makefile runs only modules that the tree has, and the help lists no command for instructors."""
    folder = handout[0].folder
    text = (folder / "Makefile").read_text(encoding="utf-8")
    modules = set(re.findall(r"flowedu_course(?:\.\w+)+", text))
    files = [folder / "course" / f"{m.replace('.', '/')}.py" for m in modules]
    assert files and all(f.exists() for f in files)
    assert "## instructors" not in text
    for name in ("grade", "grade-all", "syllabus", "authors-check", "frontier"):
        run = subprocess.run(["make", "-s", name], cwd=folder, capture_output=True,
                             encoding="utf-8")
        assert run.returncode
        assert run.stdout == f"make {name} is for instructors; make check checks your answers\n"


def test_rules_for_ai_helpers_of_students(handout):
    """They are written for students, show two good and two bad dialogues, and name existing commands."""
    text = (handout[0].folder / "AGENTS.md").read_text(encoding="utf-8")
    assert text.startswith("# Rules for AI assistants in this course\n") and len(text.splitlines()) <= 100
    good, bad = re.split(r"^## Two good dialogues$|^## Two bad dialogues$", text, flags=re.M)[1:]
    assert good.count("**Student:**") == good.count("**Assistant:**") == 2
    assert bad.count("**Student:**") == bad.count("**Assistant:**") == 2
    targets = (course.HOME / "Makefile").read_text(encoding="utf-8")
    commands = {c.removeprefix("make ") for c in COMMAND.findall(text)}
    assert {"check", "hint", "list", "solution"} <= commands
    assert all(re.search(rf"^{c}:", targets, re.M) for c in commands)
    place = course.find("4.3")
    assert f"`work/{place.file}`" in text and (handout[0].folder / "chapters/glossary.md").exists()


def test_rules_for_ai_helpers_of_contributors():
    text = (course.HOME / "AGENTS.md").read_text(encoding="utf-8")
    targets = (course.HOME / "Makefile").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert all(re.search(rf"^{c.removeprefix('make ')}:", targets, re.M) for c in COMMAND.findall(text))
    assert all((course.HOME / link).exists() for link in re.findall(r"\]\(([\w./]+)\)", text))
    assert "contributors" in text.splitlines()[0] and "ARCHITECTURE.md" in text and "CONTRIBUTING.md" in text


# ---- kernels of the library that are exercises
INSIDE = [h for h in course.holes() if h.kind == "kernel" and h.module.startswith("src/")]
CUDA = [h for h in INSIDE if h.language == "cuda"]


def test_cuda_kernels_that_are_open_exercises_are_not_in_a_tree(tmp_path):
    """Their files contain an error that a lesson recognizes, in a tree in which they are open."""
    made = tree.export(tmp_path / "handout", 8, holes=tree.select_holes(["8.9", "8.11"], 8))
    texts = {h.id: (made.folder / h.module).read_text(encoding="utf-8") for h in CUDA}
    library = {h.id: (course.HOME / h.module).read_text(encoding="utf-8") for h in CUDA}
    removed = {id: f"#error {id}: your turn\n" for id in ("8.9", "8.11")}
    assert texts == {**library, **removed} and "8.10" in texts
    assert turn(f"kernel.cu:1:2: error: {texts['8.9'].strip()}") == "8.9"


def test_instructors_are_told_which_kernels_a_tree_contains():
    """docs/instructors.md lists the Cython kernels of the library that are exercises."""
    there = [h.id for h in INSIDE if h not in CUDA]
    text = " ".join((course.HOME / "docs/instructors.md").read_text(encoding="utf-8").split())
    rules = " ".join((course.HOME / "course/flowedu_course/teach/agents.md").read_text("utf-8").split())
    assert f"exercises {', '.join(there[:-1])}, and {there[-1]}" in text
    assert f"exercises {', '.join(there[:-1])}, and {there[-1]}" in rules
