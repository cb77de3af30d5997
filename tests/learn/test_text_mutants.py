"""Mutants of kernels and fault hunts, whose texts are changed without a parser."""
import pytest

from flowedu_course import course
from flowedu_course.teach import mutants
from flowedu_course.teach.mutations import Mutant
from flowedu_course.teach.text_mutations import OPERATORS, make_text_mutants

SEPARATE = [h for h in course.holes() if h.is_separate]


@pytest.mark.parametrize("hole", SEPARATE, ids=[h.id for h in SEPARATE])
def test_a_mutant_changes_one_line_of_an_answer(hole):
    made = list(mutants.all_mutants([hole.id]))
    assert len({m.text for m in made}) == len(made) >= 1
    for mutant in made:
        old, new = mutant.answer.splitlines(), mutant.text.splitlines()
        changed = [i for i, (a, b) in enumerate(zip(old, new), 1) if a != b]
        assert len(old) == len(new) and changed == [mutant.line]
        assert old[mutant.line - 1].strip() == mutant.statement


def test_each_operator_changes_a_kernel():
    made = {m.operator for h in SEPARATE for m in mutants.all_mutants([h.id])}
    assert made == {name for name, _, _ in OPERATORS}


def test_comments_strings_and_includes_of_a_kernel_are_not_changed():
    text = ('#define N 3\n/* 1 < 2\n   3 */\nextern "C 5" __global__ void add(T *x) {  // 4 + 1\n'
            "    tile[a][b] = x[i] < y ? fold<Max>(x) : 0.5f;\n    __syncthreads();\n}\n")
    changes = {(m.line, m.change) for m in make_text_mutants(course.find("8.7"), text)}
    assert changes == {(5, "< -> <="), (5, "< -> >"), (5, "[a][b] -> [b][a]"), (6, "__syncthreads(); -> ;")}


def test_only_the_functions_of_an_answer_are_changed():
    hole = course.find("8.3")
    text = hole.answer_file.read_text(encoding="utf-8")
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines, 1) if line.startswith("cdef int cumsum("))
    following = next(i for i, line in enumerate(lines, 1) if line.startswith("cdef ") and i > first)
    assert {m.line for m in make_text_mutants(hole, text)} <= set(range(first, following))


def test_the_example_of_a_hunt_is_not_changed():
    text = '"""Sum 1 < 2."""\nn = 3\n\nif __name__ == "__main__":\n    print(4 + 5)\n'
    assert {m.line for m in make_text_mutants(course.find("6.h2"), text)} == {2}


@pytest.mark.slow
def test_a_mutant_of_a_cython_kernel_is_compiled_and_judged():
    hole = course.find("8.5")
    right = hole.answer_file.read_text(encoding="utf-8")
    wrong = next(m for m in make_text_mutants(hole, right) if m.operator == "drop_barrier").text
    some = [Mutant(hole, "", 1, name, text, answer=right)
            for name, text in {"right": right + "\n", "wrong": wrong, "no kernel": "x = 1\n"}.items()]
    results = {m.change: result for m, result in mutants.run_mutants(some, jobs=2)}
    assert results == {"right": "right", "wrong": "wrong", "no kernel": "wrong"}


def test_a_kernel_is_not_mutated_if_it_cannot_be_judged(monkeypatch, capsys):
    monkeypatch.setattr(mutants.kernels, "missing", lambda hole: "the GPU simulator is not set up")
    with pytest.raises(SystemExit):
        mutants.main(["8.7"])
    assert "8.7 cannot be judged: the GPU simulator is not set up" in capsys.readouterr().err
