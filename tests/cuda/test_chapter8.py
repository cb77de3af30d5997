"""Chapter 8 with CUDA: its lessons run completely, its exercises are consistent, and the demo trains."""
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from cuda_common import in_simulator

import flowedu as flow
from common import clean  # noqa: F401
from course.test_course import test_chapter_8_cuda_computes_what_the_cpu_does  # noqa: F401  (needs CUDA)
from custom_ops import own_registry  # noqa: F401
from flowedu.cuda.machine import kind, machine
from flowedu_course import authors, course, kernels
from flowedu_course.blocks import blocks
from flowedu_course.lesson import run_lesson
from flowedu_course.runner import Runner
from svg_text import misplaced

CHAPTER = Path(__file__).parents[2] / "chapters" / "08_kernels"
LESSONS = sorted(CHAPTER.glob("*.md"))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda p: p.name)
def test_every_block_runs_and_prints_what_it_promises(lesson, clean):  # noqa: F811
    here = ("", "cuda", kind())                         # on a GPU, blocks for the simulator are left out
    found = [b for b in blocks(lesson.read_text(encoding="utf-8")) if b.language == "python"]
    assert run_lesson(lesson) == sum(b.word("needs") in here for b in found)


@in_simulator
@pytest.mark.parametrize("hole", [h for h in course.holes() if h.language == "cuda"], ids=lambda h: h.id)
def test_an_exercise_is_consistent(hole, tmp_path):
    """The answer has all stars, and every wrong answer fails the law it names; with the simulator,
    test_holes.py also checks this.
    """
    assert kernels.missing(hole) == ""
    assert list(authors.problems(hole, Runner(course.HOME, tmp_path))) == []


PRODUCT = course.find("8.11")
SUM = course.find("8.8")
TRANSPOSE = course.find("8.10")
SOFTMAX = course.find("8.9")


def checked(hole, tmp_path, changes=(), text=""):
    runner = Runner(course.HOME, tmp_path / "work")
    runner.start(8)
    text = text or kernels.answer(hole)
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    runner.file(hole).write_text(text, encoding="utf-8")
    right, lines = runner.check(hole)
    assert len(lines) <= 12 and all(len(t) <= 100 for t in lines), lines
    return right, "\n".join(lines)


@in_simulator
def test_a_race_names_both_lines(tmp_path):
    """The example of the specification."""
    second = "        __syncthreads();                                  /* and may be"
    right, said = checked(PRODUCT, tmp_path, [(second, "/*")])
    assert not right and "law 2 of 4: no race" in said
    assert re.search(r"block \(0, 0\), thread \(\d+, \d+\) reads what thread \(\d+, \d+\) writes", said)
    assert (re.search(r"line 1[67] +for \(int s = 0;", said) and re.search(r"it is   [ab]_tile\[\d+\]\[\d+\]",
                                                                           said))
    assert "(the other)" in said and "put a __syncthreads() between the two" in said


@in_simulator
@pytest.mark.parametrize("hole, changes, words", [
    (SUM, [("if (threadIdx.x == 0)", "if (threadIdx.x == 0) for (;;) if (n < 0) break; else")],
     ("has not ended",)),
    (SUM, [("sum, step);", "sum, step)")], ("does not compile", "line 7 ")),
    (SUM, [("void row_sum", "void row_sums")], ("no kernel 'row_sum'",)),
    (SUM, [("threadIdx.x; j < n; j += 64",
            "threadIdx.x * ((n + 63) / 64); j < min(n, (threadIdx.x + 1) * ((n + 63) / 64)); j++")],
     ("1 of 3 stars", "neighbours read neighbours")),
    (TRANSPOSE, [("[33]", "[32]")], ("2 of 3 stars", "no bank conflicts")),
    (TRANSPOSE, [("        tile[threadIdx.y][threadIdx.x] = x[",
                  "        y[(left + threadIdx.x) * rows + top + threadIdx.y] = "
                  "tile[threadIdx.y][threadIdx.x] = x["),
                 ("    if (left + threadIdx.y < cols", "    if (0 && left + threadIdx.y < cols")],
     ("1 of 3 stars", "rows are written")),
    (SOFTMAX, [("            own[i] = lane",
                "            if (lane + 32 * i < n) top = max(top, x[r * n + lane + 32 * i]);\n            "
                "own[i] = lane")],
     ("2 of 3 stars", "reads of an element 2")),
])
def test_messages_for_wrong_kernels(hole, changes, words, tmp_path):
    _, said = checked(hole, tmp_path, changes)
    assert all(w in said for w in words), said


@in_simulator
def test_the_library_runs_on_answers(tmp_path):
    """With FLOWEDU_HOLES, one step of the ladder runs the student's kernel."""
    runner = Runner(course.HOME, tmp_path)
    runner.start(8)
    runner.file(SUM).write_text(kernels.answer(SUM), encoding="utf-8")
    runner.file(PRODUCT).write_text(kernels.answer(PRODUCT).replace("= sum;", "= 2 * sum;"), encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", """
import numpy as np
from flowedu.cuda.lessons import LADDERS
from flowedu.swap import whose
ladder = LADDERS["product"]
a, b = ladder.inputs(5, 6, 7)
yours, own = ladder["shared"](a, b), ladder["naive"](a, b)
print(np.allclose(yours, 2 * (a @ b), atol=1e-4), np.allclose(own, a @ b, atol=1e-4), whose())
"""], capture_output=True, encoding="utf-8", env={**os.environ, "FLOWEDU_HOLES": str(tmp_path)})
    assert done.stdout.split("\n")[0] == "True True yours: 8.11_a_tiled_product, 8.8_a_sum_of_rows", done


@in_simulator
def test_the_milestone_runs_right_kernels_in_cuda(tmp_path):
    """The milestone starts without FLOWEDU_CUDA. It compares the probabilities with those of the CPU."""
    code = """
import flowedu
import numpy as np
from flowedu_course import course
from flowedu_course.exercises import load
milestone = load(course.HOME / "chapters/08_kernels/milestone.py")
draw = np.random.default_rng(0).standard_normal
parts = [draw(n).astype(np.float32) for n in ((784, 64), 64, (64, 10), 10)]
print(milestone.in_cuda(parts, draw((3, 784)).astype(np.float32) / 28))
"""
    said = {}
    for name, factor in (("right", "= sum;"), ("wrong", "= 2 * sum;")):
        (tmp_path / name).mkdir()
        product = kernels.answer(PRODUCT).replace("= sum;", factor)
        (tmp_path / name / PRODUCT.file).write_text(product, encoding="utf-8")
        (tmp_path / name / SOFTMAX.file).write_text(kernels.answer(SOFTMAX), encoding="utf-8")
        there = {k: v for k, v in os.environ.items() if k != "FLOWEDU_CUDA"}
        said[name] = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8",
                                    env={**there, "FLOWEDU_HOLES": str(tmp_path / name)}).stdout
    assert "3 digits through 8.9 softmax of rows, 8.11 a tiled product: the same" in said["right"]
    assert said["right"].endswith("True\n") and said["wrong"].endswith("OTHER probabilities\nFalse\n")


def demo(folder, *options, **environment):
    there = {**os.environ, "FLOWEDU_NUM_THREADS": "1", "PYTHONPATH": str(Path(flow.__file__).parents[1]),
             **environment}
    return subprocess.run([sys.executable, CHAPTER / "demo.py", "--threads", "1", "--out", folder, *options],
                          cwd=folder, capture_output=True, encoding="utf-8", timeout=900, env=there)


def test_the_demo_trains_as_the_cpu_does(tmp_path):
    done = demo(tmp_path, "--quick")
    assert done.returncode == 0 and not done.stderr, done.stderr
    rows = re.findall(r"^ *\d+ +([\d.]+) +([\d.]+) +\S+$", done.stdout, re.MULTILINE)
    assert len(rows) >= 4
    np.testing.assert_allclose(*np.array(rows, float).T, atol=1e-4)
    assert float(re.search(r"largest difference of 4 losses: (\S+)", done.stdout)[1]) <= 1e-4
    if "simulator" in flow.cuda.get_device_name():
        assert re.search(r"^conv_forward +2 ", done.stdout, re.MULTILINE)
        kinds = [e.tag.rpartition("}")[2] for e in ElementTree.parse(tmp_path / "kernels.svg").getroot()]
        assert (kinds.count("rect") > 10 and kinds.count("text") > 20
                and not misplaced(tmp_path / "kernels.svg"))


def test_the_demo_reports_that_cuda_is_off(tmp_path):
    done = demo(tmp_path, FLOWEDU_CUDA="off")
    assert done.returncode == 2 and "FLOWEDU_CUDA=sim" in done.stdout and not done.stderr


@in_simulator
def test_a_seed_determines_the_order_of_threads():
    """Answers are judged under a seeded order of threads; afterwards the default order is restored."""
    orders, library = [], machine().library
    comes = flow.cuda.kernel("""__global__ void k(int *next, int *order) {
        order[atomicAdd(next, 1)] = blockIdx.x * 8 + threadIdx.x;
    }""")
    for seed in (0, 1, 2, 1, 0):
        next_, order = np.zeros(1, np.int32), np.zeros(32, np.int32)
        library.cudasim_seed(seed)
        comes("k", 4, 8)(next_, order)
        orders.append(order.tolist())
    assert all(sorted(o) == list(range(32)) for o in orders)
    assert (orders[0] == orders[4] == list(range(32)) and orders[1] == orders[3]
            and len({*map(tuple, orders)}) == 3)
