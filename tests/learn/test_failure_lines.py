"""What a law says of a wrong answer has names: the case in words, a value of yours, what should be there; never a tuple
that only the law's author can read, never a label with nothing behind it."""
import ast
import random
import re

import pytest

from common import few
from flowedu.learn import course, limits
from flowedu.learn.handout import stub
from flowedu.learn.judge import judged, said
from flowedu.learn.laws import Law, Words, law, pair
from flowedu.learn.teach import wrong

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
def test_a_wrong_answer_is_told_in_words(hole, tmp_path):
    """The first line is the case, where the law has more than one."""
    for file in (w.put(tmp_path) for w in wrong.answers(hole)):
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


# ---- what an answer raises
def raising(hole, folder, body="raise ValueError('planted')"):
    """An answer whose functions do nothing else."""
    defs = [n for n in ast.parse(stub(hole)).body if isinstance(n, ast.FunctionDef) and n.name in hole.functions]
    file = folder / hole.file
    file.write_text("\n".join(f"def {n.name}({ast.unparse(n.args)}):\n    {body}\n" for n in defs), encoding="utf-8")
    return file


@pytest.mark.parametrize("hole", few(PYTHON, lambda h: h.chapter in (1, 4, 6)), ids=lambda h: h.id)
def test_an_error_has_the_line_of_the_answer(hole, tmp_path):
    """Whatever of the library stands between: jobs, passes, threads that play ranks."""
    lines = judged(hole, raising(hole, tmp_path))["lines"]
    assert "ValueError: planted" in "\n".join(lines) and not raw(lines), lines
    assert any(re.fullmatch(r"  line \d+ +raise ValueError\('planted'\)", t) for t in lines), lines


@pytest.mark.parametrize("debug", ["", "1"])
def test_so_it_has_in_a_process_of_its_own_and_with_debug(tmp_path, monkeypatch, debug):
    monkeypatch.setenv("DEBUG", debug)
    hole = course.find("4.6")
    lines = limits.judged(hole, raising(hole, tmp_path), course.HOME)["lines"]
    assert lines[0].startswith("  smallest case   v0 = ") and lines[-1].endswith("raise ValueError('planted')"), lines


def test_an_error_in_a_thread_of_the_answer_has_its_line(tmp_path):
    hole = course.find("1.1")
    body = "import threading; t = threading.Thread(target=int, args=('x',)); t.start(); t.join()"
    file = raising(hole, tmp_path, body.replace("target=int, args=('x',)", "target=lambda: int('x')"))
    printed = limits.judged(hole, file, course.HOME)["output"]
    assert "a thread of yours:\n  ValueError: invalid literal" in printed and "line 2 " in printed, printed
