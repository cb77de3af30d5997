"""The frontier between chapters: the sample of a commit is reproducible, every chapter gets its turn, and the
tests marked with requirements exist.
"""
import ast
import hashlib
from pathlib import Path

import pytest

import frontier as marks
from flowedu_course import course
from flowedu_course.teach import frontier

ROOT = Path(__file__).parents[2]


def test_a_commit_has_its_chapter_and_each_chapter_its_turn():
    commits = [hashlib.sha1(bytes([n])).hexdigest() for n in range(100)]
    chosen = [frontier.sampled(c) for c in commits]
    assert chosen == [frontier.sampled(c) for c in commits]
    last = max(c.number for c in course.chapters())
    assert set(chosen) == {*range(1, last)} and min(map(chosen.count, chosen)) >= 5
    assert frontier.sampled("") in set(chosen)                         # no commit is known to git


def test_frontiers_exist_where_later_exercises_follow():
    holes = course.holes()
    assert all(any(h.chapter > k for h in holes) for k in frontier.steps())
    assert frontier.steps() == [0, *range(1, max(h.chapter for h in holes))]


def test_the_command_runs_the_chosen_chapters(monkeypatch, capsys):
    ran = []

    def step(k, tests, quick=False):
        ran.append((k, quick))
        return frontier.Step(k, 9, 0, 5, ["tests/test_x.py::test_y"] * (k == 3), 1.0)

    monkeypatch.setattr(frontier, "step", step)
    assert frontier.main(["2"]) == 0 and frontier.main([]) == 1 and "test_y" in capsys.readouterr().out
    assert ran == [(2, False), *((k, False) for k in frontier.steps())]
    ran.clear()
    assert frontier.main(["--sample", "2" * 40]) == (frontier.sampled("2" * 40) == 3)
    assert (ran == [(frontier.sampled("2" * 40), True)]
            and f"after chapter {ran[0][0]}" in capsys.readouterr().out)


def test_a_tree_is_tested_with_the_same_environment_everywhere(monkeypatch, tmp_path):
    """Examples are the same in each run, and CI settings of this checkout are not passed to the tree."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("FLOWEDU_HOLES", str(tmp_path))
    monkeypatch.delenv("HYPOTHESIS_PROFILE", raising=False)
    done = frontier._run(tmp_path, "-c",
                         "import os; print(sorted(os.environ.keys() & {'CI', 'FLOWEDU_HOLES'}), "
                         "os.environ['HYPOTHESIS_PROFILE'])")
    assert done.stdout.strip() == "[] debug", done


@pytest.mark.parametrize("test", sorted(marks.TESTS))
def test_marked_tests_exist(test):
    file, _, name = test.partition("::")
    assert name in {n.name for n in ast.parse((ROOT / file).read_text("utf-8")).body
                    if isinstance(n, ast.FunctionDef)}
    assert marks.chapter_of(file, name) == marks.TESTS[test] != marks.chapter_of(file, "")
    assert marks.first_chapter(file) <= marks.TESTS[test]  # otherwise its file would not be searched


def test_marked_files_exist():
    assert all((ROOT / f).exists() for files in marks.FILES.values() for f in files if "*" not in f)
