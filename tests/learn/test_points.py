"""Points must be earned: an answer that obeys the laws but is no better than the stub gets none, for any
seed.
"""
import importlib

import pytest

from common import few
from flowedu import swap
from flowedu_course import authors, course, handout, judge, limits
from flowedu_course.laws import Rejected, law
from flowedu_course.laws.guard import guarded
from flowedu_course.runner import Runner
from flowedu_course.teach import report
from flowedu_course.teach.bench import Bench
from flowedu_course.teach.edits import edits

HOLES = course.holes()
WITH_POINTS = [h for h in HOLES if h.points]
TARGETS = [h for h in HOLES if h.kind == "target"]
QUICK = ("1.1",)
TURNS, PLACE = course.find("6.11"), course.find("4.3")
# Weak but valid answers: each passes the first threshold and has at most one star.
WEAK = {
    "4.3": """
def place(buffers):
    slots = []                                     # memory is used again where it has the same size
    for b in buffers:
        if b.in_arena:
            for s in slots:
                if s[1] == rounded(b.nbytes) and all(o.last < b.first or b.last < o.first for o in s[2]):
                    break
            else:
                s = [sum(t[1] for t in slots), rounded(b.nbytes), []]
                slots.append(s)
            s[2].append(b)
            b.offset = s[0]
    return sum(s[1] for s in slots)
""",
    "4.4": """
def dead(graph):
    read = {x for n in graph.nodes for x in n.inputs} | set(graph.outputs)      # once, not until nothing changes
    graph.nodes = [n for n in graph.nodes if n.mutates or n.op.effect or any(y in read for y in n.outputs)]
    return ""
""",
    "4.6": """
def joins(value, shape, readers, outputs, alone=()):
    return fusible(value.node, alone) and value.shape == shape and value not in outputs \\
        and len(readers[value]) == 1 and len(value.node.inputs) == 1
""",
    "5.5": authors.library(course.find("5.5")).replace("if alone and", "if len(node.inputs) == 4 and alone and"),
    "6.5": """
def stops(src, dst, spec):
    return [s for s in (Layout(("B",), src.devices, (src.k,)),) if s.fits(spec.shape)]
""",
    "6.11": "def _turns(i, stages, found):\n    return sorted(found, key=lambda p: (p[0] // 2, p[1], p[0]))\n",
    "7.4": """
def similar(sizes, count):
    order = sorted(range(len(sizes)), key=lambda i: sizes[i][0] * sizes[i][1])
    return [order[i:i + count] for i in range(0, len(order), count)]
""",
}


def reached(hole, text, seed, folder):
    """Return True if the answer passes the rule for half of the points."""
    file, module = folder / hole.file, importlib.import_module(hole.module)
    file.write_text(text, encoding="utf-8")
    law(hole.laws[0])                              # stores the library objects that the law needs
    space = swap.load(file, module)
    with swap.taking(hole, space):
        measures = judge.measured(hole, judge.answer(hole, space), seed)
    return eval(hole.half, {"__builtins__": {}}, measures)


@pytest.mark.parametrize("seed", few((0, 2027, *range(1, 5)), lambda seed: seed == 0))
@pytest.mark.parametrize("hole", TARGETS, ids=lambda h: h.id)
def test_the_first_threshold_is_between_the_stub_and_every_answer(hole, seed, tmp_path):
    assert not reached(hole, handout.stub(hole), seed, tmp_path)
    assert reached(hole, authors.library(hole), seed, tmp_path)
    assert hole.id not in WEAK or reached(hole, WEAK[hole.id], seed, tmp_path)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with Bench(tmp_path_factory.mktemp("bench") / "tree") as b:
        yield b


@pytest.mark.parametrize("hole", few(WITH_POINTS, lambda h: h.id in QUICK), ids=lambda h: h.id)
def test_trivial_edits_of_a_stub_earn_no_points(bench, hole):
    assert list(authors.worthless(bench, hole)) == []


@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_trivial_edits_differ_from_stub_and_answer(hole):
    """There are several edits of each kind, all different from the stub, the answer, and each other."""
    found = edits(hole, course.find("2.1"))
    assert {"a comment", "a dead line"} <= set(found) or hole.language == "formula"
    assert len(found) >= (2 if hole.is_compiled else 10) and len(set(found.values())) == len(found)
    assert not {handout.stub(hole), authors.library(hole)} & set(found.values())


@pytest.mark.parametrize("id", few(sorted(WEAK), lambda id: id == "7.4"))
def test_a_weak_answer_has_half_of_the_points(bench, id, tmp_path):
    hole = course.find(id)
    file = tmp_path / hole.file
    file.write_text(WEAK[id], encoding="utf-8")
    verdict = bench.judged(hole, file)
    assert verdict.state == "right" and verdict.stars < 2, verdict


@pytest.mark.slow
def test_the_report_shows_measures_and_thresholds(tmp_path):
    """A check and a grade show the same text: the measured values, and the condition for half of the
    points.
    """
    file = tmp_path / TURNS.file
    file.write_text(handout.stub(TURNS).replace("    return", "    nothing = 0\n    return"),
                    encoding="utf-8")
    verdict = limits.judged(TURNS, file, course.HOME)
    assert (verdict.state, verdict.stars) == ("open", 0)
    assert Runner(course.HOME, tmp_path).format_verdict(TURNS, verdict, file) == [
        "6.11 turns                                    all laws hold; not yet better than the initial code",
        "  time 96   kept 4     half of the points: time <= 75",
        "  why   chapters/06_sbp/plans.md#pipeline-a-layer-for-each-device", "  h: hint 1 of 3"]
    mark = report.Mark(TURNS, verdict.state, 0, "", "some text", verdict.extra)
    assert mark.score == 0 and report.results([mark])["tests"][0]["tags"][0] == "state:open"


# ---- measures and prerequisites
@pytest.mark.parametrize("id", ["4.4", "4.5", "5.1"])
def test_a_list_that_lies_about_its_length_earns_nothing(id, tmp_path):
    """The nodes that are judged and counted are those of a plain list."""
    hole = course.find(id)
    file = tmp_path / hole.file
    file.write_text("class Short(list):\n    __len__ = lambda self: 1\n\n\n"
                    f"def {hole.functions[0]}(graph):\n    graph.nodes = Short(graph.nodes)\n    return ''\n",
                    encoding="utf-8")
    verdict = judge.judged(hole, file)
    assert verdict.state == "open" and verdict.extra["nodes"] == verdict.extra["given"], verdict


def test_an_exercise_with_a_weak_stub_is_asked_for_once(tmp_path, monkeypatch):
    """The stub of 4.5 obeys all laws, but the memory that 5.3 measures depends on it."""
    hole = course.find("5.3")
    monkeypatch.setattr(course, "student", lambda home: {"open": ["4.5"]})
    file = tmp_path / hole.file
    file.write_text(authors.library(hole), encoding="utf-8")
    verdict = judge.judged(hole, file)
    assert (verdict.state, verdict.is_blocked) == ("open", True) and "do 4.5 first" in verdict.lines[0], verdict
    shown = "\n".join(Runner(course.HOME, tmp_path).format_verdict(hole, verdict, file))
    assert shown.count("first") == 1 and "4.5" in shown and "hint" not in shown, shown


def test_an_error_of_a_law_is_not_reported_as_one_of_the_answer(tmp_path):
    with pytest.raises(TypeError) as raised:
        law("plans.aligned").judge(7, None)
    lines = judge.error_lines(raised.value, tmp_path / PLACE.file)
    assert lines[0].startswith("  the law itself raised TypeError: ") and "plans.py, line " in lines[1], lines


def test_a_changed_argument_is_reported():
    with pytest.raises(Rejected, match="changes a list"):
        guarded(lambda sizes: sizes.sort())([2, 1])
    assert guarded(lambda sizes: sorted(sizes))([2, 1]) == [1, 2]
