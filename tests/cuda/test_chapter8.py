"""Chapter 8 where CUDA is: its lessons run whole, the answers to its exercises are right, wrong ones are not, and the demo
trains."""
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
from chapter8_wrong import WRONG, spoilt
from course.test_course import test_chapter_8_cuda_computes_what_the_cpu_does  # noqa: F401  (skipped there without CUDA)
from custom_ops import own_registry  # noqa: F401
from flowedu.cuda.machine import kind
from flowedu.learn import exercises
from flowedu.learn.launched import launched
from flowedu.learn.lesson import blocks, run_lesson
from test_lessons import clean  # noqa: F401

CHAPTER = Path(__file__).parents[2] / "chapters" / "08_kernels"
LESSONS = sorted(CHAPTER.glob("*.md"))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda p: p.name)
def test_every_block_runs_and_prints_what_it_promises(lesson, clean):  # noqa: F811
    here = ("", "cuda", kind())                         # on a GPU, what only the simulator does is left out
    found = [b for b in blocks(lesson.read_text(encoding="utf-8")) if b.language == "python"]
    assert run_lesson(lesson) == sum(b.word("needs") in here for b in found)


def test_the_answers_are_right():
    results = {r.name: (r.state, r.text) for r in exercises.run(CHAPTER, "solutions.py")}
    assert results == dict.fromkeys(WRONG, ("right", ""))


@in_simulator
@pytest.mark.parametrize("name, what", [(n, w) for n in WRONG if n != "running_sums" for w in WRONG[n]])
def test_a_wrong_answer_is_told(name, what):
    right = vars(exercises.load(CHAPTER / "solutions.py"))[name]()
    check = vars(exercises.load(CHAPTER / "checks.py"))[f"check_{name}"]
    said, changes = WRONG[name][what]
    result = exercises.one(name, check, lambda: spoilt(right, changes), CHAPTER / "exercises.py")
    assert result.state == "wrong" and said in result.text, result


def test_every_exercise_has_wrong_answers():
    assert all(len(changes) >= 2 for changes in WRONG.values())


def demo(folder, *options, **environment):
    there = {**os.environ, "FLOWEDU_NUM_THREADS": "1", "PYTHONPATH": str(Path(flow.__file__).parents[1]), **environment}
    return subprocess.run([sys.executable, CHAPTER / "demo.py", "--threads", "1", "--out", folder, *options], cwd=folder,
                          capture_output=True, text=True, timeout=900, env=there)


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
        assert kinds.count("rect") > 10 and kinds.count("text") > 20


def test_the_demo_says_so_where_cuda_is_off(tmp_path):
    done = demo(tmp_path, FLOWEDU_CUDA="off")
    assert done.returncode == 2 and "FLOWEDU_CUDA=sim" in done.stdout and not done.stderr


@in_simulator
def test_a_seed_is_an_order_of_threads():
    """What an answer is judged under; afterwards the order is the plain one again."""
    source = """__global__ void k(int *next, int *order) { order[atomicAdd(next, 1)] = blockIdx.x * 8 + threadIdx.x; }"""
    orders = []
    for seeds in ([0], [1], [2], [1], [0]):
        next_, order = np.zeros(1, np.int32), np.zeros(32, np.int32)
        launched(source, "k", 4, 8, next_, order, seeds=seeds)
        orders.append(order.tolist())
    assert all(sorted(o) == list(range(32)) for o in orders)
    assert orders[0] == orders[4] == list(range(32)) and orders[1] == orders[3] and len({*map(tuple, orders)}) == 3


@in_simulator
def test_seeds_are_forgotten_after_a_fault():
    source = "__global__ void k(int *x) { x[threadIdx.x + 1] = 0; }"
    with pytest.raises(exercises.Wrong, match="beyond the end"):
        launched(source, "k", 1, 8, np.zeros(8, np.int32), seeds=[5])
    test_a_seed_is_an_order_of_threads()
