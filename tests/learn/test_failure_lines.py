"""Failure reports of laws are readable: the case in words, the student's value, and the expected value,
without raw Python objects or empty labels.
"""
import ast
import random
import re

import pytest

from common import few
from flowedu_course import course, limits
from flowedu_course.handout import stub
from flowedu_course.judge import error_lines, judged
from flowedu_course.laws import Law, Words, law, pair
from flowedu_course.teach import wrong

HOLES = course.holes()
PYTHON = [h for h in HOLES if not h.is_compiled]
FUNCTIONS = [h for h in PYTHON if not h.is_hunt]
LAWS = sorted({name for h in HOLES for name in h.laws})
OF_EACH_KIND = ("1.2", "3.3", "6.9", "6.11", "7.1")
LABELS = r"smallest case|case|yours|should be|fetched|losses|targets|seeds|shapes|with"


def raw(lines):
    """Return the lines that show a raw Python object instead of words, or nothing after a label."""
    return [t for t in lines if re.match(r"  (smallest case|case) +([(\[{<'\"]|\d+$)", t)
            or re.search(r"\barray\(|\bLayout\(|\bCase\(|<class|\bobject at 0x", t)
            or re.match(r"  should be +'[^']* ", t) or re.fullmatch(rf" *({LABELS}|.*:) *", t)]


@pytest.mark.parametrize("hole", few(PYTHON, lambda h: h.id in OF_EACH_KIND), ids=lambda h: h.id)
def test_failures_are_reported_in_words(hole, tmp_path):
    """The first line names the case if the law has more than one."""
    for file in (w.put(tmp_path) for w in wrong.answers(hole)):
        verdict = judged(hole, file)
        lines = verdict.lines
        assert lines and not raw(lines), (file.name, lines)
        assert law(verdict.law).cases <= 20 or re.match(r"  (smallest )?case ", lines[0]), (file.name, lines)


@pytest.mark.parametrize("name", LAWS)
def test_cases_are_described_when_an_answer_raises(name):
    one = law(name)
    for size in (1, 2, 3, 5):
        words = one.describe(one.draw(random.Random(size), size))[0]
        assert words.strip() or one.cases == 1, name
        assert not raw([f"  smallest case   {words}"] if words else []), words


def test_raw_lines_are_found():
    """Lines that 6.9, 7.1, and 6.11 printed in the past."""
    for line in ("  smallest case   ((2,), 0, (2,), array([1]))", "  smallest case   ([(1, 1, 1)], -1)",
                 "  yours           ", "  smallest case   0", "  yours           stage 0:",
                 "  should be       'an error: raise it'", "  yours           Layout(sbp=('P',))"):
        assert raw([line]) == [line]
    assert not raw(["  smallest case   shape (2,)", "  yours           (2,)", "  should be       ''",
                    "  it should be x"])
    assert pair("should be", (1,), Words("an error")) == ["  yours           (1,)",
                                                          "  should be       an error"]


def test_a_law_of_one_case_has_no_empty_line(tmp_path):
    """An exception is reported without a case if the law has only one, and with it otherwise."""
    def yours():
        raise ValueError("of yours")

    for told, first in ((lambda case: "", "ValueError: of yours"), ("shape {}".format,
                                                                    "smallest case   shape 1")):
        one = Law("a title", lambda rng, size: 1, lambda case, answer: answer(), cases=1, told=told)
        with pytest.raises(ValueError) as raised:
            one.broken(yours)
        assert error_lines(raised.value, tmp_path / "1.1_strides.py")[0] == f"  {first}"


# exceptions in an answer
def raising(hole, folder, body="raise ValueError('planted')"):
    """Write an answer whose functions only run `body`."""
    defs = [n for n in ast.parse(stub(hole)).body if isinstance(n, ast.FunctionDef)
            and n.name in hole.functions]
    file = folder / hole.file
    file.write_text("\n".join(f"def {n.name}({ast.unparse(n.args)}):\n    {body}\n" for n in defs),
                    encoding="utf-8")
    return file


@pytest.mark.parametrize("hole", few(FUNCTIONS, lambda h: h.chapter in (1, 4, 6)), ids=lambda h: h.id)
def test_an_error_has_the_line_of_the_answer(hole, tmp_path):
    """The line is found below any library code: jobs, passes, and threads that run ranks."""
    lines = judged(hole, raising(hole, tmp_path)).lines
    assert "ValueError: planted" in "\n".join(lines) and not raw(lines), lines
    assert any(re.fullmatch(r"  line \d+ +raise ValueError\('planted'\)", t) for t in lines), lines


@pytest.mark.parametrize("debug", ["", "1"])
def test_an_error_has_its_line_in_a_subprocess_and_with_debug(tmp_path, monkeypatch, debug):
    monkeypatch.setenv("DEBUG", debug)
    hole = course.find("4.6")
    lines = limits.judged(hole, raising(hole, tmp_path), course.HOME).lines
    assert (lines[0].startswith("  smallest case   v0 = ")
            and lines[-1].endswith("raise ValueError('planted')")), lines


def test_an_error_in_a_thread_of_the_answer_has_its_line(tmp_path):
    hole = course.find("1.1")
    body = "import threading; t = threading.Thread(target=int, args=('x',)); t.start(); t.join()"
    file = raising(hole, tmp_path, body.replace("target=int, args=('x',)", "target=lambda: int('x')"))
    printed = limits.judged(hole, file, course.HOME).output
    assert ("a thread of your answer raised an error:\n  ValueError: invalid literal" in printed
            and "line 2 " in printed), printed
