"""Points are earned: what obeys the laws and is no better than what was handed out has none, whatever the seed."""
import importlib

import pytest

from common import few
from flowedu.learn import authors, course, handout, judge, limits, swap
from flowedu.learn.laws import law
from flowedu.learn.runner import Runner
from flowedu.learn.teach import report
from flowedu.learn.teach.bench import Bench
from flowedu.learn.teach.edits import edits

HOLES = course.holes()
TARGETS = [h for h in HOLES if h.kind == "target"]
QUICK = ("1.1",)
TURNS, PLACE = course.find("6.11"), course.find("4.3")
# Weak answers, but answers: each passes the first threshold; at most one star.
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
    """Whether it passes the rule for half of the points."""
    file, module = folder / hole.file, importlib.import_module(hole.module)
    file.write_text(text, encoding="utf-8")
    law(hole.laws[0])                              # keeps what it needs of the library's own
    space = swap.load(file, module)
    with swap.taking(hole, space):
        measures = judge.measured(hole, judge.answer(hole, space), seed)
    return eval(hole.half, {"__builtins__": {}}, measures)


@pytest.mark.parametrize("seed", few((0, 2027, *range(1, 5)), lambda seed: seed == 0))
@pytest.mark.parametrize("hole", TARGETS, ids=lambda h: h.id)
def test_the_first_threshold_lies_between_the_stub_and_every_answer(hole, seed, tmp_path):
    assert not reached(hole, handout.stub(hole), seed, tmp_path)
    assert reached(hole, authors.library(hole), seed, tmp_path)
    assert hole.id not in WEAK or reached(hole, WEAK[hole.id], seed, tmp_path)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with Bench(tmp_path_factory.mktemp("bench") / "tree", seconds=30.0) as b:
        yield b


@pytest.mark.parametrize("hole", few(HOLES, lambda h: h.id in QUICK), ids=lambda h: h.id)
def test_no_edit_of_a_stub_that_took_no_thought_earns_a_point(bench, hole):
    assert list(authors.worthless(bench, hole)) == []


@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_edits_are_edits(hole):
    """Of each kind some; each another text than the stub's and than the answer."""
    found = edits(hole, course.find("2.1"))
    assert {"a comment", "a dead line"} <= set(found) or hole.language == "formula"
    assert len(found) >= (2 if hole.kind == "kernel" else 10) and len(set(found.values())) == len(found)
    assert not {handout.stub(hole), authors.library(hole)} & set(found.values())


@pytest.mark.parametrize("id", few(sorted(WEAK), lambda id: id == "7.4"))
def test_a_weak_answer_has_half_of_the_points(bench, id, tmp_path):
    hole = course.find(id)
    file = tmp_path / hole.file
    file.write_text(WEAK[id], encoding="utf-8")
    verdict = bench.judged(hole, file)
    assert verdict["state"] == "right" and verdict["stars"] < 2, verdict


@pytest.mark.slow
def test_what_a_student_reads(tmp_path):
    """The same in a check and in a grade: what was measured, and what half of the points are for."""
    file = tmp_path / TURNS.file
    file.write_text(handout.stub(TURNS).replace("    return", "    nothing = 0\n    return"), encoding="utf-8")
    verdict = limits.judged(TURNS, file, course.HOME)
    assert (verdict["state"], verdict["stars"]) == ("open", 0)
    assert Runner(course.HOME, tmp_path).told(TURNS, verdict, file) == [
        "6.11 turns                                    lawful, and not yet better than what was handed out",
        "  time 96   kept 4     half of the points: time <= 75",
        "  why   chapters/06_sbp/plans.md#pipeline-a-layer-for-each-device", "  h: hint 1 of 3"]
    mark = report.Mark(TURNS, verdict["state"], 0, "", "some text", verdict["extra"])
    assert mark.score == 0 and report.results([mark])["tests"][0]["tags"][0] == "state:open"
