"""Chapter 4: the lesson, the main job, and the display of plans."""
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from common import HANGS
from flowedu.core.job.session import default_session
from flowedu.show import __main__ as show
from flowedu.show.picture import draw_memory
from flowedu.show.plan import LEGEND, aligned, describe, live_bytes, parts, rows, saved_for_backward
from flowedu_course.lesson import run_lesson

CHAPTER = Path(__file__).parents[2] / "chapters" / "04_job_functions"
B = 8


@pytest.fixture(autouse=True)
def fresh_session():
    flow.clear_default_session()
    flow.random.seed(3)
    threads = flow.get_num_threads()
    yield
    flow.set_num_threads(threads)
    flow.random.seed(None)
    flow.clear_default_session()


def network(x, train=False):
    init = flow.truncated_normal(0.3)
    h = flow.layers.conv2d(x, 4, 3, padding="SAME", activation=flow.nn.relu, name="conv",
                           kernel_initializer=init)
    h = flow.nn.max_pool2d(h, 2, 2, "SAME", name="pool")
    h = flow.reshape(h, [h.shape[0], -1])
    if train:
        h = flow.nn.dropout(h, rate=0.5, name="dropout")
    return flow.layers.dense(h, 3, name="out", kernel_initializer=init)


def define(name="train_job", off=(), dropout=True):
    config = flow.function_config()
    config.without_passes(*off)

    def job(images: tp.Numpy.Placeholder((B, 1, 6, 6)),
            labels: tp.Numpy.Placeholder((B,), flow.int32)) -> tp.Numpy:
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, network(images, dropout), name="loss")
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1])).minimize(loss)
        return loss

    job.__name__ = name
    return flow.global_function("train", config)(job)


def data(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(B, 1, 6, 6)).astype(np.float32), rng.integers(0, 3, B).astype(np.int32)


# ---- the lesson (its exercises: tests/learn/test_holes.py)
def test_the_lesson_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert sum(run_lesson(CHAPTER / page) for page in ("README.md", "plan.md", "sessions.md",
                                                       "recipe.md")) > 20
    assert (tmp_path / "build/chapter-4/lesson_memory.png").stat().st_size > 5000


# reading a plan
def test_a_plan_shows_every_call_under_the_names_of_its_values():
    job = define()
    job(*data())
    text, table = job.show(), rows(job.plan, job.argument_names())
    assert [r.number for r in table if r.number >= 0] == list(range(len(job.plan.steps)))
    by_result = {r.result: r for r in table}
    assert by_result["conv"].reads == ["images", "conv-weight"]
    assert by_result["pool-first"].reads == ["conv"]                  # max pooling moved before bias and relu
    assert by_result["pool"].op == "bias_add+relu"  # reuses the memory of pool-first, not its name
    assert by_result["pool"].home == by_result["pool-first"].home + "*"
    assert by_result["grad(conv-weight)"].shape == "4x1x3x3"
    assert {r.part for r in table} == {"forward", "backward", "update"}
    assert table[-1].reads[:2] == ["lr", "step"]
    assert table[-1].result == "(8 variables)"                        # 4 weights, 4 momentum buffers
    for line in ("plan of train_job", "---- backward", "---- update", LEGEND,
                 f"arena {job.plan.arena:,} bytes", "4 gradients", "pool (view)"):
        assert line in text
    assert max(map(len, text.splitlines())) <= 140


def test_the_live_column_peaks_at_the_lower_bound():
    job = define()
    job(*data())
    assert max(live_bytes(job.plan)) == job.plan.bound_bytes <= job.plan.arena <= job.plan.sum_bytes
    peaks = [line for line in job.show().splitlines() if line.endswith(" peak")]
    assert peaks
    assert sum(step.inplace for step in job.plan.steps) == job.show().count("*  ")


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,24}", fullmatch=True), min_size=1, max_size=9,
                       values=st.tuples(
                           st.integers(0, 9999), st.integers(0, 9999), st.sampled_from(["", "2 of them"]))))
def test_effects_of_passes_are_shown_as_a_table(passes):
    """For any names: one column of names and one of numbers; passes without effect have no row and are only
    listed.
    """
    lines = aligned([f"{name} {a:4d} -> {b:4d} nodes  {said}" for name, (a, b, said) in passes.items()])
    rows = [line for line in lines if " nodes" in line]
    assert len({line.index(" -> ") for line in rows}) <= 1
    did = [name for name, (a, b, said) in passes.items() if a != b or said]
    assert [line.split()[0] for line in rows] == did
    idle = "".join(lines[len(rows):]).removeprefix("nothing to do for ")
    assert idle == ", ".join(name for name in passes if name not in did)


def test_parts_come_in_order_and_predict_jobs_have_one():
    job = define()
    read = flow.global_function("predict")(_reader())
    job(*data())
    order = parts(job.plan)
    assert order == sorted(order, key=["forward", "backward", "update"].index)
    assert set(parts(read.plan)) == {"forward"}
    assert saved_for_backward(read.plan) == set()
    assert "----" not in read.show()
    saved = {b.name for b in saved_for_backward(job.plan)}
    assert {"pool-first", "pool-first.index"} <= saved  # "pool" is stored in the memory of the former
    assert "conv" not in saved


def _reader():
    def read(images: tp.Numpy.Placeholder((B, 1, 6, 6))) -> tp.Numpy:
        return network(images)
    return read


def test_packing_of_a_strided_input_is_shown():
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((4, 6))) -> tp.Numpy:
        return flow.math.reduce_sum(flow.nn.softmax(flow.transpose(x, perm=[1, 0])), axis=[0])

    job(np.ones((4, 6), np.float32))
    assert rows(job.plan, job.argument_names())[1].reads == ["x (view) packed"]
    assert rows(job.plan)[0].op == "pack"
    assert "1 strided inputs copied" in job.show()
    assert describe(job.plan).startswith("plan of job")


def test_tuple_arguments_are_numbered():
    from typing import Tuple  # noqa: UP035   (as OneFlow's users write it)

    @flow.global_function()
    def job(pair: Tuple[tp.Numpy.Placeholder((2,)), tp.Numpy.Placeholder((2,))], c: tp.Numpy.Placeholder((2,))) -> tp.Numpy:  # noqa: UP006
        return pair[0] + pair[1] * c

    assert "pair.0" in job.show()
    assert "pair.1" in job.show()


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_memory_image(tmp_path, suffix):
    job = define()
    job(*data())
    path = draw_memory(job.plan, tmp_path / "deep" / f"memory.{suffix}", job.argument_names())
    assert path.stat().st_size > 5000
    if suffix == "svg":
        assert "train_job" in path.read_text(encoding="utf-8")


def test_a_plan_without_an_arena_can_be_drawn(tmp_path):
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
        return x

    job(np.ones(2, np.float32))
    assert draw_memory(job.plan, tmp_path / "m.png").exists()
    assert "plan of job" in job.show()


OFF = [(), ("fuse",), ("inplace",), ("reuse",), ("cse", "dead"), ("simplify", "cse", "dead", "fuse",
                                                                  "inplace", "reuse")]


def test_passes_do_not_change_results():
    losses = {}
    for off in OFF:
        flow.clear_default_session()
        flow.random.seed(3)
        job = define(off=off, dropout=False)
        losses[off] = [job(*data(i)) for i in range(3)]
        assert ("fuse" in str(job.plan.report)) == ("fuse" not in off)
    for off in OFF[1:]:
        np.testing.assert_allclose(losses[off], losses[()], rtol=1e-4, atol=1e-6)


# ---- python -m flowedu.show
JOBS = """
import numpy as np
import flowedu as flow, flowedu.typing as tp
{first}
@flow.global_function()
def double(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
    return x + x

@flow.global_function()
def triple(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
    return x + x + x
{last}
"""


@pytest.mark.parametrize("first", ["", "flow.clear_default_session()"])
@pytest.mark.parametrize("last", [
    "",
    "print(double(np.ones((2, 3), np.float32))); raise SystemExit('the script went on')",
    "if __name__ == '__main__':\n    triple(np.ones((2, 3), np.float32)); print('the script went on')",
    "flow.get_all_variables(); print('the script went on')"])
def test_show_compiles_a_script_without_running_it(tmp_path, capsys, first, last):
    script = tmp_path / "script.py"
    script.write_text(JOBS.format(first=first, last=last), encoding="utf-8")
    mine = default_session()
    argv, path = list(sys.argv), list(sys.path)
    assert show.main([str(script)]) == 0
    out = capsys.readouterr().out
    assert "plan of double" in out
    assert "plan of triple" in out
    assert "went on" not in out
    assert default_session() is mine
    assert (sys.argv, sys.path) == (argv, path)
    assert show.main([str(script), "triple", "--memory", str(tmp_path / "m")]) == 0
    assert "plan of double" not in capsys.readouterr().out
    assert (tmp_path / "m" / "triple.png").exists()


def test_show_reports_missing_input(tmp_path, capsys):
    script = tmp_path / "script.py"
    assert show.main([str(script)]) == 2
    assert "no script at" in capsys.readouterr().out
    script.write_text("import flowedu\n")
    assert show.main([str(script)]) == 1
    assert "defines no job" in capsys.readouterr().out
    script.write_text(JOBS.format(first="", last=""), encoding="utf-8")
    assert show.main([str(script), "quadruple"]) == 1
    assert "no job quadruple; its jobs: double, triple" in capsys.readouterr().out
    script.write_text(JOBS.format(first="", last="double(x=1)"), encoding="utf-8")
    assert show.main([str(script)]) == 1
    assert "positional arguments only" in capsys.readouterr().out
    script.write_text(JOBS.format(first="", last="@flow.global_function\ndef bare(): pass"), encoding="utf-8")
    assert show.main([str(script)]) == 1
    assert "add the parentheses" in capsys.readouterr().out


# ---- the main job
def demo(tmp_path, *arguments, **more):
    command = [sys.executable, "-u", str(CHAPTER / "demo.py"), "--out", str(tmp_path), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def contents(folder: Path) -> dict:
    newest, = (folder / "checkpoints").iterdir()
    return {str(p.relative_to(newest)): p.read_bytes() for p in newest.rglob("*") if p.is_file()}


@pytest.mark.slow
def test_the_main_job_is_reproducible_and_writes_its_images(tmp_path):
    runs = [demo(tmp_path / str(i), "--quick", "--threads", "1", "--seed", seed)
            for i, seed in enumerate("778")]
    texts = [r.communicate(timeout=HANGS)[0] for r in runs]
    assert [r.returncode for r in runs] == [0, 0, 0], texts
    assert "logits equal bit for bit" in texts[0]
    assert {p.name for p in (tmp_path / "0").glob("*.png")} == {"training.png", "misread.png", "filters.png",
                                                                "memory.png"}
    a, b, c = (contents(tmp_path / str(i)) for i in range(3))
    assert a == b
    assert a["conv1-weight/out"] != c["conv1-weight/out"]
    assert float(re.search(r"starts ([\d.]+) s after launch", texts[0])[1]) > 0


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is another signal here")
def test_ctrl_c_leaves_the_last_checkpoint_intact(tmp_path):
    process = demo(tmp_path, "--quick", "--epochs", "1000", "--threads", "1")
    seen = []
    for line in process.stdout:
        seen.append(line)
        if line.startswith("epoch 2/"):
            process.send_signal(signal.SIGINT)
            break
    rest = process.communicate(timeout=HANGS)[0]
    assert process.returncode == 130, (seen, rest)
    assert "stopped after" in rest
    assert "Traceback" not in rest
    newest = rest.strip().rpartition(" ")[2]
    assert (Path(newest) / "snapshot_done").exists()

    @flow.global_function()
    def read(x: tp.Numpy.Placeholder((2, 25))) -> tp.Numpy:
        return flow.matmul(x, flow.reshape(flow.get_variable("conv1-weight", (32, 1, 5, 5),
                                                             initializer=flow.zeros_initializer()), [25, 32]))

    flow.load_variables(flow.checkpoint.get(newest))
    assert flow.get_all_variables()["conv1-weight"].numpy().all(), "the weights of a training, and not zeros"


@pytest.mark.slow
def test_the_main_job_classifies_97_percent(tmp_path):
    process = demo(tmp_path)
    text = process.communicate(timeout=6 * HANGS)[0]
    assert process.returncode == 0, text
    assert float(re.search(r"([\d.]+)% of 1,000 test images", text)[1]) >= 97
