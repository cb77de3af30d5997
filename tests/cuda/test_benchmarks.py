"""The GPU benchmarks run in the simulator with tiny sizes, and print a message without a GPU."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cuda_common import in_simulator

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = [in_simulator, pytest.mark.skipif(not FOLDER.exists(),
                                               reason="an installed package has no benchmarks")]


def run_benchmark(file, *arguments, **environment):
    done = subprocess.run([sys.executable, str(FOLDER / file), *arguments], capture_output=True,
                          encoding="utf-8", timeout=500,
                          env={**os.environ, "FLOWEDU_CUDA_CHECK": "0", **environment})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("cuda", ["off", "sim"])
def test_without_a_gpu_nothing_is_measured(cuda):
    out = run_benchmark("gpu.py", FLOWEDU_CUDA=cuda)
    assert out.startswith("bench-gpu: there is no GPU here") and out.count("\n") == 1


def test_every_row_runs_in_the_simulator():
    out = run_benchmark("gpu.py", "--simulate", "--quick", FLOWEDU_CUDA="off")
    for row in ("product of", "relu", "sum of all", "sum of rows", "sum of columns", "softmax", "transpose",
                "layer norm", "exp", "MLP", "GPT block"):
        assert re.search(rf"^{row}.* \d+\.\d\d (us|ms)", out, re.M), (row, out)
    assert len(re.findall(r"copy \d", out)) == 8


def test_counters_match_hand_computed_values():
    out = run_benchmark("counters.py", "x + y", "x.sum(0)", "step of SGD")
    lines = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith("  ")}
    # 32768 floats, four per thread, three arrays: 256 warps load two vectors and store one, 16 sectors each.
    assert lines["add_float32_flat"] == ["1", str(3 * 4 * 32768), "16.00", "512", "256", "0", "0", "0",
                                         "0", "0"]
    assert lines["sgd_update"][0] == "1" and lines["sum_columns"][2] == "4.00"
