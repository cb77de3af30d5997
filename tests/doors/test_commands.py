"""The commands that README, the lessons, and `make help` document, in a folder with a space in its name, in a
shell without a locale and without network access. NOT_HERE gives a reason for every command that is not
tested.
"""
import os
import re

import pytest
from house import ROOT, House, documented, kind, ordinary, targets

from common import few

RIGHT = """def row_major(shape):
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= max(n, 1)
    return tuple(reversed(out))
"""
JOB = """import flowedu as flow
import flowedu.typing as tp

@flow.global_function()
def double(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
    return x + x
"""
FILES = {"train.py": "import sys\nimport torch\nprint(torch.ones(2).sum().item(), sys.argv[1:])\n",
         "script.py": JOB, "ranks.py": "import flowedu as flow\nprint('rank', flow.env.get_rank())\n"}

# (command, exit status, regular expression for the output), run in this order in one folder. make itself
# exits with 2.
STUDENT = [
    ("make", 0, r"chapter-8 +the lesson and the demo"),
    ("make help", 0, r"the lesson and the demo"),
    ("make list", 0, r"\[ \] 1\.1 "),
    ("make start CH=1", 0, r"chapter 1: 5 exercises in work/, 5 of them new"),
    ("make start", 0, r"exercises in work/"),
    ("make check EX=1.1", 2, r"1\.1 strides: not begun"),
    ("make hint EX=1.1", 0, r"hint 1 of 3"),
    ("make hint", 0, r"hint 2 of 3"),
    ("make solution EX=1.1", 0, r"FORCE=1"),
    ("make milestone-1", 2, r"still open"),
    ("make milestone-1 LIBRARY=1", 0, r"milestone 1 reached"),
    ("make from-scratch", 2, r"0 of 29 exercises of chapters 1 to 4 are yours; still open: 1\.1, 1\.2"),
    ("make from-scratch LIBRARY=1", 0, r"from scratch: reached"),
    ("cp answer.py work/1.1_strides.py && make check EX=1.1", 0, r"1\.1 strides +right"),
    ("make check", 2, r"1\.2 broadcasting: not begun"),
    ("make solution EX=1.1", 0, r"def row_major"),
    ("make list", 0, r"\[\*\] 1\.1 "),
    ("make chapter-1 YOURS=1 LESSON=1", 0, r"code blocks ran"),
    ("make chapter-9", 2, r"There is no chapter 9 yet"),
    ("make watch", 0, r"1\.2"),
]
INSTRUCTOR = [
    ("make student-tree UPTO=1 OUT=../handout", 0, r"handout: \d+ files, exercises of chapters 1 to 1"),
    ("cp -a .venv ../handout && rm -f ../handout/.venv/stamps/linked-* && "
     "CC=false make -C ../handout check EX=1.1", 2,
     r"using the kernels that came with this tree\n[\s\S]*1\.1 strides: not begun"),
    ("make student-tree UPTO=4 OUT=../closed CLOSED=1", 0, r"files"),
    ("make solutions-tree UPTO=3 OUT=../solutions", 0, r"23 answers of chapters 1 to 3"),
    ("mkdir -p submission submissions/ann submissions/bob && cp answer.py submission/1.1_strides.py && "
     "cp answer.py submissions/ann/1.1_strides.py && make grade WORK=submission CH=1 SEED=2027", 0,
     r"15 of 100 points"),
    ("make grade-all DIR=submissions CH=1 SEED=2027", 0, r"2 students in"),
    ("cp answer.py submissions/bob/1.1_strides.py && make similar DIR=submissions CH=1", 0,
     r"1\.1 +100% +ann +bob +the same text"),
    ("make weights BY=time OUT=build/weights.csv CH=1", 0, r"5 exercises: build/weights\.csv"),
    ("make questions SEED=7 CH=4", 0, r"6 questions: build/questions/questions\.md, answers\.md"),
    ("make leaderboard DIR=build/grade", 0, r"1  \w+ +0 +15"),
    ("make syllabus WEEKS=7 OUT=build/plan.md && make syllabus WEEKS=10 CH=1-6", 0,
     r"\d+ exercises in 10 weeks"),
    ("make authors-check EX=1.1", 0, r"1\.1"),
]
ENGINEER = [
    ("make build", 0, r"flowedu is built and linked"),
    ("python -m flowedu", 0, r"instruction set v?\w+, of"),
    ("python -m flowedu.mock --as torch train.py --epochs 1", 0, r"2\.0 \['--epochs', '1'\]"),
    ("python -m flowedu.show script.py double", 0, r"0  add"),
    ("python -m flowedu.distributed.launch --engine threads --nproc_per_node 2 ranks.py", 0, r"rank 1"),
    ("python -m flowedu_course.exercises chapters/06_sbp", 1, r"0 of 3 right"),
    ("make fuzz ARGS='--seconds 2'", 0, r"0 findings"),
    ("make test ARGS='-q tests/show/test_about.py'", 0, r"passed|\.\.\.|100%"),
    ("make test-near FILE=src/flowedu/autograd/functional_modules.py", 0, r"test_func\.py"),
    ("make test-near FILE=src/flowedu/none.py", 2, r"there is no file src/flowedu/none\.py"),
    ("make clean", 0, r""),
    ("make list", 0, r"\[ \] 1\.2 "),                                # rebuilds the files that clean removed
]
# Kinds of commands that no test runs, each with the reason.
NOT_HERE = {
    "make test": "chooses among these very tests; typed with ARGS above",
    "make test-all": "is what runs this",
    "make test-everywhere": "minutes; .ci/run runs a third of it (--sample)",
    "make test-torch": "CI runs these tests in test-all", "make test-mpi": "CI runs these tests in test-all",
    "make test-cuda": "part of make test-all", "make test-debug": "a step of .ci/run",
    "make build-debug": "the first part of test-debug", "make lint": "a step of .ci/run",
    "make peers": "a step of .ci/run",
    "make array-api": "a step of .ci/run; tests/array_api runs its tool without the suite",
    "make doors": "is what runs this", "make book": "typed by tests/book/test_book.py",
    "make notebooks": "runs all lessons; tests/book/test_notebooks.py writes them, and runs some",
    "make mutants": "an hour: before a release", "make bench": "installs gigabytes; benchmarks/ has tests of "
    "its own", "make stubs": "tests/structure/test_stubs.py asks the tool whether it would write anything",
    "make bench-scale": "tests/benchmarks runs rows of it",
    "make bench-gpu": "tests/cuda runs its rows small", "make counters": "tests/cuda counts",
    "make annotate": "two minutes of Cython; flowedu/swap/build.py annotates in tests/learn/test_build.py",
    "make chapter-N": "test_make_chapter_runs_each_lesson below",
    "pip install": "test_package.py installs a wheel", "pip wheel": "test_package.py",
    "make frontier": "a step of .ci/run", "bash .ci/run": "runs this",
}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """Return a checkout for commands that need no earlier command."""
    return House(tmp_path_factory.mktemp("door"))


def test_every_command_of_the_documents_is_tried():
    """Every command of the pages and of the help is run here or has an entry in NOT_HERE."""
    tried = {kind(part) for rows in (STUDENT, INSTRUCTOR, ENGINEER) for line, _, _ in rows
             for part in line.split(" && ")}
    assert (tried & NOT_HERE.keys()) <= {"make test", "make chapter-N"}         # run with other arguments
    unknown = {c: page for c, page in documented().items() if kind(c) not in tried | NOT_HERE.keys()}
    assert (not unknown and targets() <= tried | NOT_HERE.keys()), (unknown,
                                                                    targets() - tried - NOT_HERE.keys())
    assert len(documented()) > 40


def test_every_documented_target_has_a_rule():
    """The Makefile has a rule for every documented target, even if no test runs it."""
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command, page in documented().items():
        for target in re.findall(r"(?<= )[a-z][-a-z]*[a-z](?:-\d+|-N)?(?= |$)", command.partition("make")[2]):
            rule = re.sub(r"-(\d+|N)$", "-%", target)
            assert re.search(rf"^([\w-]+ )*{re.escape(rule)}( [\w-]+)*:", rules,
                             re.MULTILINE), (command, page)
        for variable in re.findall(r"\b([A-Z]+)=", command.partition("make ")[2]):
            assert f"$({variable})" in rules or variable in rules, (command, page)


def test_commands_run_as_an_ordinary_user_even_for_root(tmp_path):
    """Commands run without root's privileges, so that tests under root find missing permissions."""
    house = object.__new__(House)
    house.folder = house.home = tmp_path
    user, powers = house.type("id -u; grep CapEff /proc/self/status | cut -f 2").split()
    assert (user, int(powers, 16)) == ("1000", 0) if ordinary() else user == str(os.geteuid())


@pytest.mark.slow
@pytest.mark.parametrize("rows", [STUDENT, INSTRUCTOR, ENGINEER], ids=["student", "instructor", "engineer"])
def test_command_sequences(tmp_path, rows):
    house = House(tmp_path)
    for name, text in {**FILES, "answer.py": RIGHT}.items():
        (house.folder / name).write_text(text, encoding="utf-8")
    for line, rc, words in rows:
        said = house.type(line, rc)
        assert re.search(words, said), (line, said[-3000:])


@pytest.mark.parametrize("chapter", few(
    sorted(p.name for p in (ROOT / "chapters").glob("[0-9]*_*")), lambda name: False,
    simulated=lambda name: any("needs=cuda" in p.read_text("utf-8")
                               for p in (ROOT / "chapters" / name).glob("*.md"))))
def test_make_chapter_runs_each_lesson(house, chapter):
    """Run `make chapter-N LESSON=1`; test_chapters.py runs the demos."""
    said = house.type(f"make chapter-{int(chapter[:2])} LESSON=1")
    pages = set(re.findall(rf"^chapters/{chapter}/(\w+\.md): \d+ code blocks ran", said, re.MULTILINE))
    assert "README.md" in pages and len(pages) == len([p for p in (ROOT / "chapters" / chapter).glob("*.md")
                                                       if not p.name.endswith(".zh.md")
                                                       and "```python" in p.read_text("utf-8")])
