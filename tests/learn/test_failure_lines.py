"""What a law says of a wrong answer has names: the case in words, a value of yours, what should be there; never a tuple
that only the law's author can read, never a label with nothing behind it."""
import random
import re

import pytest

from common import few
from flowedu.learn import course
from flowedu.learn.judge import judged, said
from flowedu.learn.laws import Law, Words, law, pair

HOLES = course.holes()
PYTHON = [h for h in HOLES if h.kind != "kernel"]
LAWS = sorted({name for h in HOLES for name in h.laws})
OF_EACH_KIND = ("1.2", "3.3", "6.9", "6.11", "7.1")
LABELS = r"smallest case|case|yours|should be|fetched|losses|targets|seeds|shapes|with"


def raw(lines):
    """The lines that have an object as Python would show it where words belong, or nothing at all."""
    return [t for t in lines if re.match(r"  (smallest case|case) +([(\[{<'\"]|\d+$)", t)
            or re.search(r"\barray\(|\bLayout\(|\bCase\(|<class|\bobject at 0x", t)
            or re.match(r"  should be +'[^']* ", t) or re.fullmatch(rf" *({LABELS}|.*:) *", t)]


@pytest.mark.parametrize("hole", few(PYTHON, lambda h: h.id in OF_EACH_KIND), ids=lambda h: h.id)
def test_a_wrong_answer_is_told_in_words(hole):
    """The first line is the case, where the law has more than one."""
    for file in hole.wrong():
        verdict = judged(hole, file)
        lines = verdict["lines"]
        assert lines and not raw(lines), (file.name, lines)
        assert law(verdict["law"]).cases <= 20 or re.match(r"  (smallest )?case ", lines[0]), (file.name, lines)


@pytest.mark.parametrize("name", LAWS)
def test_a_case_has_words_for_when_an_answer_raises(name):
    one = law(name)
    for size in (1, 2, 3, 5):
        words = one.told(one.draw(random.Random(size), size))
        assert words.strip() or one.cases == 1, name
        assert not raw([f"  smallest case   {words}"] if words else []), words


def test_what_is_raw_is_found():
    """As it was: of 6.9, 7.1, 6.11."""
    for line in ("  smallest case   ((2,), 0, (2,), array([1]))", "  smallest case   ([(1, 1, 1)], -1)",
                 "  yours           ", "  smallest case   0", "  yours           stage 0:",
                 "  should be       'an error: raise it'", "  yours           Layout(sbp=('P',))"):
        assert raw([line]) == [line]
    assert not raw(["  smallest case   shape (2,)", "  yours           (2,)", "  should be       ''", "  it should be x"])
    assert pair("should be", (1,), Words("an error")) == ["  yours           (1,)", "  should be       an error"]


def test_a_law_of_one_case_has_no_empty_line(tmp_path):
    """What an answer raises is told without a case where there is only one, and with it elsewhere."""
    def yours():
        raise ValueError("of yours")

    for told, first in ((lambda case: "", "ValueError: of yours"), ("shape {}".format, "smallest case   shape 1")):
        one = Law("a title", lambda rng, size: 1, lambda case, answer: answer(), cases=1, told=told)
        with pytest.raises(ValueError) as raised:
            one.broken(yours)
        assert said(raised.value, tmp_path / "1.1_strides.py")["lines"][0] == f"  {first}"
