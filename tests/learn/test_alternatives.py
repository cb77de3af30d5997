"""Alternative right answers pass, alone and together: the laws require exactly what the library requires."""
import re
from pathlib import Path

import pytest

from common import few
from flowedu_course import alternatives, course

FILES = [(course.find(id), file) for id, some in alternatives.files().items() for file in some]


def test_twenty_exercises_have_an_alternative():
    assert len({h.id for h, _ in FILES}) >= 20
    all_ = sorted(p for c in course.chapters() for p in c.folder.glob("right/*"))
    assert all_ == sorted(file for _, file in FILES)
    assert all(re.fullmatch(r"\d\.\d+_[a-z0-9_]+", file.stem) for _, file in FILES)


@pytest.mark.parametrize("hole, file", few(FILES, lambda row: row[0].id == "4.4"),
                         ids=lambda x: x.stem if isinstance(x, Path) else "")
def test_an_alternative_is_right_alone(hole, file):
    assert alternatives.alone(hole, file) == []


@pytest.mark.slow
def test_alternatives_are_right_together():
    assert alternatives.together() == []


def test_an_answer_that_breaks_the_library_is_reported_by_exercise(tmp_path):
    """A bound that is too small for fetched values fails in its own laws and in another exercise's laws that
    run it.
    """
    short = tmp_path / "4.2_short.py"
    short.write_text("def lower_bound(buffers, steps):\n    change = [0] * (steps + 1)\n    for b in "
                     "buffers:\n        change[b.first] += rounded(b.nbytes) * b.in_arena\n"
                     "        change[b.last + 1] -= rounded(b.nbytes) * b.in_arena\n"
                     "    best = now = 0\n    for c in change:\n        now += c\n        best = "
                     "max(best, now)\n    return best\n")
    found = alternatives.together([short], ["4.2", "4.3", "1.1"])
    assert [line.partition(",")[0] for line in found] == ["4.2", "4.3"], found
    assert "IndexError" in found[0] and "plans.bound" in found[0] and "IndexError" in found[1]
    [told] = alternatives.alone(course.find("4.2"), short)
    assert told.startswith("4.2_short.py: wrong, law: plans.bound")


def test_alternatives_are_also_checked_together(tmp_path):
    """An answer that calls a method of tensors, which graph values do not have, passes alone. The check of
    all answers together finds it.
    """
    methods = tmp_path / "2.6_methods.py"
    methods.write_text("def unbroadcast(grad, shape):\n    while grad.ndim > len(shape):\n        grad = "
                       "grad.sum(0)\n    for i, n in enumerate(shape):\n        grad = grad.sum(i, "
                       "keepdim=True) if n == 1 else grad\n    return grad\n")
    found = alternatives.together([methods], ["2.6", "4.7"])
    assert ([line.partition(",")[0] for line in found] == ["2.6", "4.7"]
            and "built.unbroadcast" in found[0]), found
