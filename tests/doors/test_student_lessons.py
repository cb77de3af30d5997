"""Lessons and demos in a student's tree run to their end when exercises are open, half written, or wrong;
they report the parts that are left out.
"""
import inspect
import re

import pytest
from student import HOLES, LAST, answered, handed_out, lessons, run_in_home

from common import few
from flowedu_course import course
from flowedu_course.blocks import promised
from flowedu_course.handout import stub
from flowedu_course.teach import stubs, wrong


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Export the tree of the whole course."""
    return handed_out(tmp_path_factory.mktemp("read"))


@pytest.mark.slow
def test_lessons_skip_blocks_whose_subprocesses_need_open_exercises(whole):
    """A block's subprocess reports an open exercise by its exit status or its output."""
    said = lessons(whole, "empty", "chapters/06_sbp/processes.md", "chapters/08_kernels/inside.md")
    assert all(re.search(rf"{page}\.md:\d+: left out: it needs exercise", said)
               for page in ("processes", "inside"))


@pytest.mark.slow
def test_a_skipped_block_shows_the_output_of_the_page(whole):
    """A skipped block shows the page's output, so that a page can be read before its exercises are done."""
    said = lessons(whole, "empty", "chapters/04_job_functions/plan.md")
    page = (whole / "chapters/04_job_functions/plan.md").read_text(encoding="utf-8")
    (line, output), *_ = promised(page).items()
    at = said.index(f"plan.md:{line}: left out: it needs exercise")
    assert "  > (expected output:)\n" + "".join(f"  > {t}\n"
                                                for t in output.text.splitlines()[:2]) in said[at:at + 500]


@pytest.mark.slow
def test_lessons_report_where_an_answer_changes_the_numbers(whole):
    """An arena without sharing is a right answer, but changes the figures on the page."""
    answered(whole, [h for h in HOLES if h.chapter <= 4], folder="mine")
    place = course.find("4.3")
    (whole / "mine" / place.file).write_text(stub(place).replace("    end = 0\n", "    end = start = 0\n"),
                                             "utf-8")
    assert "with the library's code and no open exercises, the block prints: " in lessons(
        whole, "mine", "chapters/04_job_functions/plan.md")


@pytest.mark.slow
def test_a_lesson_continues_after_a_wrong_answer(whole):
    """A lesson reports the line of an answer that raises and the effect of wrong numbers or accesses out of
    bounds, then continues.
    """
    folder = whole / "spoilt"
    bodies = {"4.1": "raise KeyError('mine')", "1.1": "return [1 << 40] * len(shape)"}
    for id, body in bodies.items():
        answered(whole, [h for h in HOLES if h.chapter <= 4], folder="spoilt")
        hole = course.find(id)
        given = ", ".join(inspect.signature(stubs.function_of(hole, hole.objects[0])).parameters)
        (folder / hole.file).write_text(f"def {hole.functions[0]}({given}):\n    {body}\n", encoding="utf-8")
        pages = ["chapters/04_job_functions/plan.md", "chapters/05_nn_graph/differences.md"]
        said = lessons(whole, "spoilt", *pages)
        assert f"{pages[1]}: 2 code blocks ran" in said or "ended by SIG" in said, said
        told = {"4.1": "left out: your 4.1_last_reads.py, line 2, raises KeyError: 'mine'",
                "1.1": "ended by SIG|with the library's code"}[id]
        assert re.search(told, said), said


@pytest.mark.slow
def test_a_half_written_file_does_not_end_a_lesson(whole):
    """`make chapter-1` treats the answer as not begun and says so in the line about the code that runs."""
    answered(whole, [h for h in HOLES if h.chapter == 1], folder="typing")
    (whole / "typing" / course.find("1.3").file).write_text("def slice_view(:\n")
    recipe = (whole / "Makefile").read_text(encoding="utf-8").partition("\nchapter-%:")[2].partition(
        "\n\n")[0]
    there = {"FLOWEDU_HOLES": "typing", "FLOWEDU_HOLES_SKIP": "1", "COLUMNS": "200"}
    assert "FLOWEDU_HOLES_SKIP=1" in recipe
    code = "from flowedu_course.left_out import describe_code; print(describe_code())"
    said = run_in_home(whole, "-c", code, **there).stdout
    assert ("print(describe_code())" in recipe and "yours: 1.1, 1.2, 1.4, 1.5; open: 1.3, 2.1" in said
            and "not 1.3_a_slice_is_a_view.py: SyntaxError" in said and "`make check EX=1.3`" in said)
    done = run_in_home(whole, "-m", "flowedu_course.lesson", "chapters/01_blob/README.md", **there)
    assert done.returncode == 0 and "it needs exercise 1.3, which is open" in done.stdout


def test_the_first_half_of_chapter_5_does_not_depend_on_its_last_exercise(whole):
    """With the exercises of earlier chapters done, every block of its first page runs."""
    answered(whole, [h for h in HOLES if h.chapter < 5], folder="first-half")
    said = lessons(whole, "first-half", "chapters/05_nn_graph/README.md")
    assert "left out: it needs exercise" not in said and "9 code blocks ran" in said


def demo_of(home, chapter, folder):
    (home / folder).mkdir(exist_ok=True)
    demo = f"chapters/{chapter.folder.name}/demo.py"
    small = ["--quick", "--threads", "1"] if '"--quick"' in (home / demo).read_text(encoding="utf-8") else []
    return run_in_home(home, demo, *small, "--out", str(home / "build" / chapter.folder.name),
                       FLOWEDU_HOLES=folder)


@pytest.mark.parametrize("chapter", few([c for c in course.chapters() if c.number < 8],
                                        lambda c: c.number in (2, 4)),
                         ids=lambda c: c.folder.name)
def test_a_demo_names_the_open_exercise(whole, chapter):
    done = demo_of(whole, chapter, "empty")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^the demo ends here: it needs exercise \d\.\d+, which is open$",
                     done.stdout, re.M)


def test_a_demo_names_the_answer_that_ended_it(whole):
    answered(whole, [h for h in HOLES if h.chapter <= 2 and h.id != "2.4"], folder="ended")
    hole = course.find("2.4")
    wrong = "\n".join(f"def {n}(dy, y):\n    return dy / of_no_such_name\n" for n in hole.functions)
    (whole / "ended" / hole.file).write_text(wrong, encoding="utf-8")
    done = demo_of(whole, course.chapters()[1], "ended")
    assert (done.returncode == 1
            and re.search(r"demo ends here: your 2\.4_\w+\.py, line \d, raises NameError", done.stdout))


@pytest.mark.slow
@pytest.mark.parametrize("upto", few(list(range(1, LAST + 1)), lambda n: n == 1))
def test_every_lesson_of_a_tree_of_any_size_completes(tmp_path, upto):
    """Run all lessons with no exercise done and with every other one done."""
    home = handed_out(tmp_path, upto)
    answered(home, [], folder="nothing")
    answered(home, [h for n, h in enumerate(HOLES) if not h.is_separate and h.chapter <= upto and n % 2],
             folder="half")
    for c in course.chapters():
        for folder in ("nothing", "half") if c.number <= upto else ():
            said = lessons(home, folder, f"chapters/{c.folder.name}")
            assert re.search(r"\.md: \d+ code blocks ran", said)
            assert set(re.findall(r"it needs exercise (\d)", said)) <= {str(n) for n in range(1, upto + 1)}


@pytest.mark.slow
@pytest.mark.parametrize("which", ["none", "laws", "before", "wrong", "all"])
@pytest.mark.parametrize("chapter", course.chapters(), ids=lambda c: c.folder.name)
def test_lessons_complete_with_any_open_exercises(whole, chapter, which):
    """Run lessons with nothing answered, all but the targets, all of earlier chapters, all wrong, and all
    right; then no block is skipped.
    """
    some = {"none": [], "laws": [h for h in HOLES if h.kind == "law"],
            "all": [h for h in HOLES if not h.is_separate],
            "wrong": [], "before": [h for h in HOLES if h.chapter < chapter.number]}[which]
    folder = f"{which}-{chapter.number}"
    answered(whole, some, folder=folder)
    for hole in HOLES if which == "wrong" else ():
        if not hole.is_separate:
            (whole / folder / hole.file).write_text(wrong.answers(hole)[0].text, encoding="utf-8")
    said = lessons(whole, folder, f"chapters/{chapter.folder.name}")
    assert which != "all" or "left out: it needs exercise" not in said and "is printed: " not in said
    if which == "before":                             # only blocks of its own exercises are skipped
        assert set(re.findall(r"it needs exercise (\d)", said)) <= {str(n)
                                                                    for n in range(chapter.number, LAST + 1)}
