"""Statements of exercises: the names they list, their sentences, and where both are shown."""
import re
from dataclasses import replace

import pytest

from flowedu_course import course
from flowedu_course.handout import stub
from flowedu_course.language import tr
from flowedu_course.laws import ranks
from flowedu_course.teach import texts

HOLES = course.holes()
WINS = course.find("6.6")


@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_a_work_file_lists_the_names_with_their_parameters(hole, monkeypatch):
    for language in ("en", "zh"):
        monkeypatch.setenv("FLOWEDU_LANG", language)
        lines = stub(hole).splitlines()
        assert [t for t in hole.uses if f"    {tr(t)}" not in lines] == []
        assert tr("names you can use:") in lines or not hole.uses


def test_a_work_file_does_not_name_helpers_that_are_the_answer():
    for id, name in (("4.9", "substitute"), ("6.9", "locate_rows")):
        hole = course.find(id)
        assert name in hole.at_hand and not re.search(rf"\b{name}\b", stub(hole).rpartition('"""')[2])


@pytest.mark.parametrize("uses, fault", [
    (["_rank(signature): a key"], ""),
    (["_rank(values, inputs): a key"], "has the parameters signature, inputs"),
    (["_rank(signature, inputs, more): a key"], "has the parameters signature, inputs"),
    (["_rank(signature, whole=1): a key"], "has the parameters signature, inputs"),
    (["ranked(signature): a key"], "ranked is neither in scope nor explained"),
    (["_rank(signature)"], "expected a name, a colon, and a meaning"),
    ([], "_rank not listed"),
])
def test_a_listed_name_must_exist_with_these_parameters(uses, fault, monkeypatch):
    monkeypatch.setattr(course.Hole, "at_hand", ["_rank"])
    found = list(texts.faults(replace(WINS, uses=tuple(uses))))
    assert (not found) if not fault else any(fault in f for f in found), found


def test_a_sentence_with_two_conditions_is_a_fault():
    two = "If x is even and y is odd, return 2 unless z is odd."
    assert [*texts.faults(replace(WINS, task=f"If x is odd, return 1. {two}\n"))] == [f"more than one condition: {two}"]
    assert texts.sentences("It holds:\n1. a\nb\n2. If c. D; E\n") == ["It holds:", "a b", "If c.", "D;", "E"]
    assert any("no example" in f for f in texts.faults(replace(WINS, example="")))


def test_the_bytes_in_the_example_of_a_plan_are_the_librarys():
    """The law computes the bytes of data parallelism that the example states."""
    sent, stored = ranks._bill(ranks.DATA, 16)
    assert f"sends {sent:,} bytes, and a device stores {stored:,} bytes" in course.find("6.12").example
