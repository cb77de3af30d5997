"""Rules of stars: which expressions they are, and their values."""
import pytest

from flowedu_course import course, rules

HOLES = [h for h in course.holes() if h.stars]


@pytest.mark.parametrize("rule, measures, expected", [
    ("right", {"right": True}, True),
    ("right", {"right": 0}, False),
    ("kernels <= 1.10 * library", {"kernels": 11, "library": 10}, True),
    ("kernels <= 1.10 * library  # a remark <= 0", {"kernels": 12, "library": 10}, False),
    ("given - kernels >= 0.25 * (given - library)", {"given": 8, "kernels": 7, "library": 4}, True),
    ("given - kernels >= 0.25 * (given - library)", {"given": 9, "kernels": 8, "library": 4}, False),
    ("time <= 33 and kept <= 10", {"time": 33, "kept": 11}, False),
    ("time <= 33 and kept <= 10", {"time": 33, "kept": 10}, True),
    ("conflicts == 0", {"conflicts": 0}, True),
])
def test_a_rule_compares_measures(rule, measures, expected):
    assert rules.holds(rule, measures) is expected


@pytest.mark.parametrize("rule", [
    "__import__('os')", "x.__class__", "x[0]", "9 ** 9 ** 9 >= x", "x < 1", "lambda: x", "x or x", "1 <= x <= 2",
    "missing <= 1", "-x <= 1", "'text' == x", "[x]"])
def test_anything_else_is_an_error(rule):
    with pytest.raises(ValueError, match="expected: comparisons"):
        rules.holds(rule, {"x": 1})


@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_every_rule_of_the_course_can_be_evaluated(hole):
    for rule in filter(None, (hole.half, *hole.stars)):
        assert rules.holds(rule, dict.fromkeys(rules.names(rule), 1)) in (True, False)
        assert set(dict(rules.goals(rule))) <= rules.names(rule)


def test_goals_are_the_measures_on_the_left():
    assert list(rules.goals("inside >= library and nodes <= 2 * fewest")) == [("inside", False), ("nodes", True)]
    assert list(rules.goals("right")) == []
    assert rules.is_timed("0.8 * yours <= library") and not rules.is_timed("score == 0  # yours")
    assert rules.is_timed("yours_slope <= 1.5 * sine")
