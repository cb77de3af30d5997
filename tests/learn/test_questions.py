"""Questions with drawn numbers: the library's answers equal formulas by hand, and a seed fixes every text."""
import math

import pytest

from flowedu_course.teach import questions
from flowedu_course.teach.questions import TEMPLATES, make_questions

NET = lambda w: sum(a * b + b for a, b in zip(w, w[1:]))
UP = lambda n: max(64, math.ceil(n / 64) * 64)
MATRIX = lambda d: 4 * d["rows"] * d["cols"]
# The answers by hand, without the library.
HAND = {
    "images": lambda d: d["n"] * 3 * d["side"] ** 2 * 4,
    "offset": lambda d: 4 * (d["b"] * d["c"] + 2 * d["c"] + 3),
    "broadcast": lambda d: 4 * d["n"] * d["m"],
    "windows": lambda d: 4 * d["size"] * ((d["n"] - d["size"]) // d["step"] + 1),
    "matmul": lambda d: d["m"] * d["k"] * d["n"],
    "attention": lambda d: 2 * d["b"] * d["h"] * d["t"] ** 2 * d["d"],
    "backward": lambda d: d["n"] * d["a"] * d["b"] + 2 * d["n"] * d["b"] * d["c"],
    "convolution": lambda d: d["batch"] * d["filters"] * (d["size"] - d["kernel"] + 1) ** 2 * d["channels"]
    * d["kernel"] ** 2,
    "parameters": lambda d: NET(d["widths"]),
    "adam": lambda d: 16 * NET(d["widths"]),
    "live": lambda d: max(sum(n for n, a, b in d["sizes"] if a <= t <= b) for t in range(6)),
    "unshared": lambda d: sum(n for n, _, _ in d["sizes"]),
    "rounding": lambda d: UP(4 * d["n"]),
    "launches": lambda d: (d["ops"] - 1) * d["us"],
    "fusion": lambda d: (d["ops"] - 1) * 8 * d["n"],
    "halves": lambda d: 6 * NET(d["widths"]),
    "all-gather": lambda d: (d["k"] - 1) * MATRIX(d),
    "all-reduce": lambda d: 2 * (d["k"] - 1) * MATRIX(d),
    "reduce-scatter": lambda d: (d["k"] - 1) * MATRIX(d),
    "all-to-all": lambda d: MATRIX(d) * (d["k"] - 1) // d["k"],
    "elsewhere": lambda d: d["k"] * MATRIX(d),
    "largest part": lambda d: math.ceil(d["rows"] / d["k"]) * d["cols"] * 4,
    "data parallel": lambda d: 2 * (d["k"] - 1) * 4 * NET(d["widths"]),
    "cheapest": lambda d: min(*((d["devices"] - 1) * 4 * d["k"] * d[s] for s in "mn"),
                              4 * d["k"] * (d["m"] + d["n"]) * (d["devices"] - 1) // d["devices"]),
    "pipeline": lambda d: 3 * (d["batches"] + d["stages"] - 1),
    "kept": lambda d: d["stages"] * (d["stages"] + 1) // 2,
    "padding": lambda d: sum(2 * max(h for h, _ in two) * max(w for _, w in two) - sum(h * w for h, w in two)
                             for two in (d["sizes"][:2], d["sizes"][2:])),
    "bandwidth": lambda d: 12 * d["n"] * 1000 / d["gbs"],
    "roofline": lambda d: max(2 * d["m"] * d["k"] * d["n"] / d["gflops"],
                              4 * (d["m"] * d["k"] + d["k"] * d["n"] + d["m"] * d["n"]) / d["gbs"]) / 1000,
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_answer_equals_its_formula_by_hand(name):
    """An arena is at least the largest sum of neighbours, and less than the sum of all."""
    for seed in range(8):
        q = next(q for q in make_questions(seed) if q.name == name)
        if name == "arena":
            sizes = [*map(UP, q.given["sizes"])]
            assert max(map(sum, zip(sizes, sizes[1:]))) <= q.answer < sum(sizes)
        else:
            assert math.isclose(q.answer, HAND[name](q.given)), q


def test_there_are_thirty_questions_of_all_chapters():
    made = make_questions(7)
    assert len(made) == 30 and {q.chapter for q in made} == {*range(1, 9)}
    assert {"bytes", "multiplications", "µs"} <= {q.unit for q in made}
    assert all("{" not in q.text and q.answer > 0 for q in made)
    assert [q.name for q in make_questions(7, [6])] == [q.name for q in made if q.chapter == 6]
    assert [q.name for q in made] == [*TEMPLATES]


def test_a_seed_fixes_the_questions_and_another_one_changes_them():
    assert make_questions(7) == make_questions(7)
    assert sum(a.text != b.text for a, b in zip(make_questions(7), make_questions(8))) >= 25
    assert make_questions(7)[0].given == {"n": 120, "side": 64}


def test_the_sheet_of_questions_has_no_answers(tmp_path, capsys):
    assert questions.main(["7", "1-4", "--out", str(tmp_path / "sheets")]) == 0
    asked, answers = ((tmp_path / "sheets" / n).read_text(encoding="utf-8")
                      for n in ("questions.md", "answers.md"))
    some = make_questions(7, range(1, 5))
    assert asked.count("\n") == len(some) + 2 and answers.count("\n") == len(some) + 4
    for i, q in enumerate(some, 1):
        assert f"{i}. {q.text} [{q.unit}]" in asked
        assert f"| {i} | {q.chapter} | {questions.format_answer(q)} |" in answers
        assert questions.format_answer(q) not in asked
    assert questions.main(["7", "9", "--out", str(tmp_path)]) == 2
    assert questions.main(["7", "x-4", "--out", str(tmp_path)]) == 2
