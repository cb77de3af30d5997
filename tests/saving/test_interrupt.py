"""A program that trains and saves continuously is interrupted or killed at random moments; its newest
checkpoint is always complete and consistent.
"""
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow
from common import HANGS, fresh_session  # noqa: F401

# Every variable holds the number of the step, so that a mixture of two saves would show. `data` makes a save
# take a while.
CHILD = textwrap.dedent("""
    import os, shutil, signal, sys
    import numpy as np
    import flowedu as flow
    import flowedu.typing as tp

    @flow.global_function("train")
    def train(x: tp.Numpy.Placeholder((1,))) -> tp.Numpy:
        w = flow.get_variable("w", (1,), initializer=flow.zeros_initializer())
        for i in range(6):
            flow.get_variable(f"data{i}", (4096,), initializer=flow.zeros_initializer(), trainable=False)
        loss = w * x
        rate = flow.optimizer.PiecewiseConstantScheduler([], [1.0])
        flow.optimizer.SGD(rate, momentum=0).minimize(loss)        # w is minus the number of the step
        return loss

    manager = flow.train.SimpleCheckPointManager(sys.argv[1])
    try:
        manager.initialize_or_restore()
        one = np.ones(1, np.float32)
        step = int(flow.get_all_variables()["System-Train-TrainStep-train"].numpy()[0])
        first = True
        while True:
            train(one)
            step += 1
            flow.load_variables({f"data{i}": np.full(4096, step, np.float32) for i in range(6)})
            manager.save()
            for old in manager.list_checkpoints()[:-3]:
                shutil.rmtree(os.path.join(sys.argv[1], old))
            if first:
                print("ready", flush=True)
            first = False
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)       # one more may come
        sys.exit(130)
    """)


def check_newest_checkpoint(root):
    """Check that the newest checkpoint is complete and return its step; all other listed ones must be
    readable.
    """
    manager = flow.train.SimpleCheckPointManager(str(root))
    names = manager.list_checkpoints()
    for name in names[-2:]:
        got = {n: v.numpy() for n, v in flow.load(root / name).items()}
        assert sorted(got) == ["System-Train-TrainStep-train", *(f"data{i}" for i in range(6)), "w"]
        step = int(got["System-Train-TrainStep-train"][0])
        assert got["w"][0] == -step
        for i in range(6):
            np.testing.assert_array_equal(got[f"data{i}"], np.full(4096, step, np.float32))
    return step


def stop(child, how):
    """Send the signal, and repeat an interrupt that arrived where Python drops exceptions (for example, in a
    destructor).
    """
    for _ in range(HANGS // 10):
        child.send_signal(how)
        try:
            return child.communicate(timeout=10)[1]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(f"the program does not react to {how!r}")


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_tests_that_interrupt_need_no_terminal():
    """Tests pass when the parent process ignores Ctrl-C, as a shell does for background jobs."""
    tests = Path(__file__).parents[1]
    chosen = f"{tests}/ops/test_python_kernels.py::test_an_interrupt_in_a_kernel", \
        f"{tests}/oneflow04/test_prefetch.py::test_ctrl_c_interrupts_a_consumer_that_waits"
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
                           *chosen],
                          capture_output=True, encoding="utf-8", env={**os.environ, "PYTEST_ADDOPTS": ""},
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert done.returncode == 0 and done.stdout.startswith(".. "), done.stdout


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_the_newest_checkpoint_survives_ten_interruptions(tmp_path):
    draw, root = random.Random(time.time_ns()), tmp_path / "snapshots"
    program = tmp_path / "train.py"
    program.write_text(CHILD, encoding="utf-8")
    reached = 0
    for round in range(10):
        how = signal.SIGINT if round % 2 else signal.SIGKILL
        child = subprocess.Popen([sys.executable, str(program), str(root)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        try:
            assert child.stdout.readline() == b"ready\n", child.stderr.read().decode()
            time.sleep(draw.uniform(0, 0.1))
            errors = stop(child, how)
        finally:
            child.kill()
            child.communicate()
        assert child.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL), errors.decode()
        step = check_newest_checkpoint(root)
        assert step > reached, "a later run went on from where the newest checkpoint was"
        reached = step
    left = [n for n in os.listdir(root) if not n.startswith("snapshot_")]
    assert all(n.startswith(".snapshot_") and ".partial-" in n for n in left)
