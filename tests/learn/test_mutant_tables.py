"""The tables chapters/*/mutants.toml: mutants of right answers whose results do not change, with reasons."""
import functools

import pytest

from flowedu_course import course
from flowedu_course.teach import mutants
from flowedu_course.teach.mutations import Mutant

CHAPTERS = {c.number: c for c in course.chapters()}


@functools.cache
def mutants_of(exercise):
    return list(mutants.all_mutants([exercise]))


@pytest.mark.parametrize("number", CHAPTERS)
def test_each_row_explains_a_mutant_of_its_chapter(number):
    exercises = {h.id for h in CHAPTERS[number].holes}
    faults = []
    for row in mutants.equal_rows(CHAPTERS[number].folder):
        if not {"exercise", "change", "reason"} <= set(row) <= {"exercise", "change", "reason", "statement"}:
            faults.append(f"{row}: expected the keys exercise, change, and reason, and perhaps statement")
        elif row["exercise"] not in exercises:
            faults.append(f"{row['exercise']}: this chapter has no such exercise")
        elif not any(mutants.explains(row, m) for m in mutants_of(row["exercise"])):
            faults.append(f"{row['exercise']}: no mutant has the change {row['change']} in this statement")
    assert faults == []


@pytest.mark.parametrize("number", CHAPTERS)
def test_each_row_has_a_reason_and_occurs_once(number):
    rows = mutants.equal_rows(CHAPTERS[number].folder)
    assert [r for r in rows if len(r["reason"].split()) < 4 or not r["reason"].endswith(".")] == []
    keys = [(r["exercise"], r["change"], r.get("statement", "")) for r in rows]
    assert [key for key in keys if keys.count(key) > 1] == []
    # A row without a statement explains the change in each statement.
    assert [(e, c) for e, c, statement in keys if statement and (e, c, "") in keys] == []


def test_a_row_with_a_statement_explains_only_the_change_in_this_statement():
    hole = course.find("1.1")
    first, second = (Mutant(hole, "", 1, "1 -> 2", "", statement) for statement in ("x = 1", "y = 1"))
    row = {"exercise": "1.1", "change": "1 -> 2", "reason": "x is not used"}
    assert mutants.explains(row, first) and mutants.explains(row, second)
    row["statement"] = "x = 1"
    assert mutants.explains(row, first) and not mutants.explains(row, second)
    assert not mutants.explains({**row, "exercise": "1.2"}, first)
    assert not mutants.explains({**row, "change": "1 -> 0"}, first)
