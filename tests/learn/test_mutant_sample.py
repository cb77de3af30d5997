"""Samples of the mutants of right answers, chosen by the commit."""
import random
import subprocess
import sys

import pytest

from flowedu_course import course, limits
from flowedu_course.teach import mutants
from flowedu_course.teach.bench import Bench
from flowedu_course.teach.frontier import commit

# Chapters without unexplained survivors (make authors-check MUTANTS=1).
EXPLAINED = (1, 2, 3, 4, 5, 6, 7)
# The slowest mutants take 10 s of processor time, most of them less than 1 s.
JUDGED, COMPARED = 60, 6


@pytest.mark.slow
def test_the_laws_reject_a_sample_of_mutants_or_a_table_explains_them():
    """Run in another process, because mutants are judged in forks, which would copy that of the tests."""
    exercises = [h.id for h in course.holes() if h.chapter in EXPLAINED and not h.is_separate]
    done = subprocess.run([sys.executable, "-m", "flowedu_course.teach.mutants", *exercises, "--sample",
                           str(JUDGED), "--choice", commit(), "--jobs", "1"], capture_output=True,
                          encoding="utf-8")
    assert done.returncode == 0 and done.stdout.split()[-5] == str(JUDGED), done.stdout + done.stderr


@pytest.mark.slow
def test_check_and_grade_agree_on_a_sample_of_mutants(tmp_path):
    """Compare the verdict of a separate process (make check) with that of the sandbox (make grade)."""
    sample = random.Random(commit()).sample(list(mutants.all_mutants()), COMPARED)
    differences = []
    with Bench(tmp_path / "tree") as bench:
        for i, mutant in enumerate(sample):
            file = tmp_path / str(i) / mutant.hole.file
            file.parent.mkdir()
            file.write_text(mutant.text, encoding="utf-8")
            checked, graded = limits.judged(mutant.hole, file, course.HOME), bench.judged(mutant.hole, file)
            if (checked.state, checked.stars, checked.law) != (graded.state, graded.stars, graded.law):
                differences.append(f"{mutant}: {checked} {graded}")
    assert differences == []
