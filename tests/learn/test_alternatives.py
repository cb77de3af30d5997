"""Right answers of another kind are right, alone and all at once: laws ask no more than the library does, and no less."""
import re
from pathlib import Path

import pytest

from common import few
from flowedu.learn import alternatives, course

FILES = [(course.find(id), file) for id, some in alternatives.files().items() for file in some]


def test_twenty_exercises_have_one_and_each_file_belongs_to_one():
    assert len({h.id for h, _ in FILES}) >= 20
    all_ = sorted(p for c in course.chapters() for p in c.folder.glob("right/*"))
    assert all_ == sorted(file for _, file in FILES)
    assert all(re.fullmatch(r"\d\.\d+_[a-z0-9_]+", file.stem) for _, file in FILES)


@pytest.mark.parametrize("hole, file", few(FILES, lambda row: row[0].id == "4.4"),
                         ids=lambda x: x.stem if isinstance(x, Path) else "")
def test_right_alone(hole, file):
    assert alternatives.alone(hole, file) == []


@pytest.mark.slow
def test_right_together():
    assert alternatives.together() == []


def test_an_answer_that_the_library_cannot_run_with_is_told_by_exercise(tmp_path):
    """A bound with no room for what is fetched: another exercise's laws run it, and its own find it as well."""
    short = tmp_path / "4.2_short.py"
    short.write_text("def lower_bound(buffers, steps):\n    change = [0] * (steps + 1)\n    for b in buffers:\n"
                     "        change[b.first] += rounded(b.nbytes) * b.in_arena\n"
                     "        change[b.last + 1] -= rounded(b.nbytes) * b.in_arena\n"
                     "    best = now = 0\n    for c in change:\n        now += c\n        best = max(best, now)\n"
                     "    return best\n")
    found = alternatives.together([short], ["4.2", "4.3", "1.1"])
    assert [line.partition(",")[0] for line in found] == ["4.2", "4.3"], found
    assert "IndexError" in found[0] and "plans.bound" in found[0] and "IndexError" in found[1]
    [told] = alternatives.alone(course.find("4.2"), short)
    assert told.startswith("4.2_short.py: wrong by plans.bound")


def test_what_is_accepted_alone_breaks_no_other(tmp_path):
    """Tensors have methods, values of a graph have none: alone both will do on tensors, together it is found."""
    methods = tmp_path / "2.6_methods.py"
    methods.write_text("def unbroadcast(grad, shape):\n    while grad.ndim > len(shape):\n        grad = grad.sum(0)\n"
                       "    for i, n in enumerate(shape):\n        grad = grad.sum(i, keepdim=True) if n == 1 else grad\n"
                       "    return grad\n")
    found = alternatives.together([methods], ["2.6", "4.7"])
    assert [line.partition(",")[0] for line in found] == ["2.6", "4.7"] and "built.unbroadcast" in found[0], found
