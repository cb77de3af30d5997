"""Mutants of right answers: how they are made, and how they are judged."""
import ast
import functools

import pytest

from flowedu_course import course
from flowedu_course.teach import mutants
from flowedu_course.teach.mutations import OPERATORS, Mutant, make_mutants


@functools.cache
def every_mutant():
    return list(mutants.all_mutants())


def test_there_are_mutants_of_every_operator_and_of_every_python_exercise():
    assert len(every_mutant()) >= 2500
    assert {m.operator for m in every_mutant()} == {f.__name__ for f in OPERATORS} and len(OPERATORS) == 12
    assert {m.hole.id for m in every_mutant()} == {h.id for h in course.holes() if not h.is_separate}


def test_a_mutant_is_a_program_that_differs_from_the_answer_by_one_change():
    text = "def f(a, b):\n    if a < b and b > 0:\n        return min(a, b)\n    return -a\n"
    made = list(make_mutants(course.find("1.2"), text))
    assert len({m.text for m in made}) == len(made) > 10
    answer = ast.unparse(ast.parse(text)).splitlines()
    for mutant in made:
        compile(mutant.text, mutant.change, "exec")
        new = mutant.text.splitlines()
        assert new != answer and sum(a != b for a, b in zip(answer, new)) <= 1


def test_texts_of_errors_annotations_and_docstrings_are_not_changed():
    text = 'def f(a: int = 3) -> int:\n    """One."""\n    raise ValueError(f"{a + 1}: " + "x" * 2)\n'
    assert [m.operator for m in make_mutants(course.find("1.2"), text)] == ["drop_statement"]


def test_verdicts_on_wrong_endless_and_equal_mutants(monkeypatch):
    monkeypatch.setattr(mutants, "SECONDS", 1.0)
    hole = course.find("1.1")
    right = mutants.library(hole)
    wrong = next(m for m in make_mutants(hole, right) if m.operator == "change_arithmetic").text
    signature = right[:right.index(":\n") + 2]
    endless = signature + "    while True:\n        pass\n"
    crash = signature + "    import os\n    os._exit(0)\n"
    some = [Mutant(hole, "", 1, name, text) for name, text in
            {"right": right, "wrong": wrong, "ended 1": endless, "ended 2": crash}.items()]
    results = {m.change: result for m, result in mutants.run_mutants(some, jobs=2)}
    assert results == {"right": "right", "wrong": "wrong", "ended 1": "ended", "ended 2": "ended"}


def test_a_mutant_with_fewer_stars_than_its_answer_is_worse():
    hole = course.find("6.11")
    right = mutants.library(hole)
    all_forward = right.replace("min(stages - i, len(forward))", "len(forward)")
    assert all_forward != right and mutants.count_stars(hole, right, 0) == 2
    some = [Mutant(hole, "", 1, "", text, answer=right) for text in (all_forward, right)]
    results = {m.text: result for m, result in mutants.run_mutants(some, jobs=2)}
    assert results == {all_forward: "worse", right: "right"}


@pytest.mark.parametrize("explained", [False, True])
def test_a_survivor_without_an_explanation_is_printed(explained, monkeypatch, capsys):
    hole = course.find("1.1")
    survivor = Mutant(hole, "drop_sign", 7, "a -> b", mutants.library(hole))
    monkeypatch.setattr(mutants, "all_mutants", lambda ids: [survivor])
    row = {"exercise": "1.1", "change": "a -> b", "reason": "it is equal"}
    monkeypatch.setattr(mutants, "equal_rows", lambda folder: [row] if explained else [])
    assert mutants.main([]) == (0 if explained else 1)
    printed = capsys.readouterr().out
    assert ("survives: 1.1 line 7, drop_sign: a -> b" in printed) is not explained
    last = printed.splitlines()[-1]
    assert last.split() == ["all", "1", "0", "0", *(["1", "0"] if explained else ["0", "1"])]


def test_the_exit_status_depends_on_the_share_of_unexplained_survivors(monkeypatch, capsys):
    """At most 1% of all mutants may survive without an explanation; a row without a survivor is printed."""
    one = Mutant(course.find("1.1"), "drop_sign", 7, "a -> b", "")
    monkeypatch.setattr(mutants, "all_mutants", lambda ids: [one] * 200)
    monkeypatch.setattr(mutants, "equal_rows", lambda folder: [{"exercise": "1.1", "change": "c -> d"}])
    for survivors, status in ((2, 0), (3, 1)):
        results = ["right"] * survivors + ["worse"] * 7 + ["ended", "wrong"] * 100
        monkeypatch.setattr(mutants, "run_mutants", lambda some, *_, r=results: zip(some, r))
        assert mutants.main([]) == status
        printed = capsys.readouterr().out
        assert "no survivor, remove the row: 1.1: c -> d" in printed
        row = ["1.1", "200", str(193 - survivors), "7", "0", str(survivors)]
        assert row in [line.split() for line in printed.splitlines()]
