"""The frontier between chapters: the sample of a commit is always the same, each chapter has its turn, and what tests say
they need is about tests that are there."""
import ast
import hashlib
from pathlib import Path

import pytest

import frontier as marks
from flowedu.learn import course
from flowedu.learn.teach import frontier

ROOT = Path(__file__).parents[2]


def test_a_commit_has_its_chapter_and_each_chapter_its_turn():
    commits = [hashlib.sha1(bytes([n])).hexdigest() for n in range(100)]
    chosen = [frontier.sampled(c) for c in commits]
    assert chosen == [frontier.sampled(c) for c in commits]
    last = max(c.number for c in course.chapters())
    assert set(chosen) == {*range(1, last)} and min(map(chosen.count, chosen)) >= 5
    assert frontier.sampled("") in set(chosen)                         # where git knows of no commit


def test_there_is_a_frontier_where_later_exercises_are():
    holes = course.holes()
    assert all(any(h.chapter > k for h in holes) for k in frontier.steps())
    assert frontier.steps() == [0, *range(1, max(h.chapter for h in holes))]


def test_the_command_runs_what_was_chosen(monkeypatch, capsys):
    ran = []

    def step(k, tests, quick=False):
        ran.append((k, quick))
        return frontier.Step(k, 9, 0, 5, ["tests/test_x.py::test_y"] * (k == 3), 1.0)

    monkeypatch.setattr(frontier, "step", step)
    assert frontier.main(["2"]) == 0 and frontier.main([]) == 1 and "test_y" in capsys.readouterr().out
    assert ran == [(2, False), *((k, False) for k in frontier.steps())]
    ran.clear()
    assert frontier.main(["--sample", "2" * 40]) == (frontier.sampled("2" * 40) == 3)
    assert ran == [(frontier.sampled("2" * 40), True)] and f"after chapter {ran[0][0]}" in capsys.readouterr().out


def test_a_tree_is_tried_alike_wherever_it_is(monkeypatch, tmp_path):
    """The same examples on each run; and what CI asks of this checkout is not asked of a tree."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("FLOWEDU_HOLES", str(tmp_path))
    monkeypatch.delenv("HYPOTHESIS_PROFILE", raising=False)
    done = frontier._run(tmp_path, "-c", "import os; print(sorted(os.environ.keys() & {'CI', 'FLOWEDU_HOLES'}), "
                                         "os.environ['HYPOTHESIS_PROFILE'])")
    assert done.stdout.strip() == "[] debug", done


@pytest.mark.parametrize("test", sorted(marks.TESTS))
def test_a_single_test_that_is_marked_is_there(test):
    file, _, name = test.partition("::")
    assert name in {n.name for n in ast.parse((ROOT / file).read_text("utf-8")).body if isinstance(n, ast.FunctionDef)}
    assert marks.chapter_of(file, name) == marks.TESTS[test] != marks.chapter_of(file, "")
    assert marks.first_chapter(file) <= marks.TESTS[test]              # so that its file is looked at


def test_files_that_are_marked_are_there():
    assert all((ROOT / f).exists() for files in marks.FILES.values() for f in files if "*" not in f)
