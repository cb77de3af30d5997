"""Failures are reported as sentences that include the hint."""
from pathlib import Path

import pytest

from flowedu_course import exercises
from flowedu_course.exercises import Wrong, one

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(p.parent for p in (ROOT / "chapters").glob("[0-9]*/checks.py"))
ANSWERS = [lambda *a, **k: None, lambda *a, **k: 0, lambda *a, **k: [], lambda *a, **k: (),
           lambda *a, **k: {},
           lambda *a, **k: a[0] if a else None, lambda *a, **k: [1, 2], lambda *a, **k: ([], 0)]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.name)
def test_a_failure_is_a_sentence(chapter):
    texts = []
    for name, check in vars(exercises.load(chapter / "checks.py")).items():
        if name.startswith("check_"):
            for answer in ANSWERS:
                result = one(name[6:], check, answer, chapter / "exercises.py")
                texts += [result.text] if result.state == "wrong" else []
    assert len(texts) >= 10
    assert not [t for t in texts if t.startswith(("('", '("'))]


def test_problem_and_hint():
    assert (str(Wrong("a is 3", "it should be 4")) == "a is 3\n  hint: it should be 4"
            and str(Wrong("a is 3")) == "a is 3")
