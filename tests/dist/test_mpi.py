"""The laws of global tensors on processes: pytest itself runs on every rank."""
import subprocess

import pytest

from common import HANGS

from .ranks import command, environment, mpi

ROOT = __import__("pathlib").Path(__file__).parents[2]
SOME = "matmul or softmax or reduce or conv2d-6 or reshape or gather or layer_norm or concat"


@mpi
@pytest.mark.parametrize("k, test, which", [
    (2, "tests/dist/test_spmd.py", ""), (4, "tests/dist/test_spmd.py", ""),
    (2, "tests/laws/test_global.py", SOME), (4, "tests/laws/test_global.py", "matmul or softmax")])
def test_the_same_tests_on_processes(k, test, which):
    """CI runs these. All: python -m flowedu.distributed.launch --nproc_per_node 4 -m pytest
    tests/laws/test_global.py
    """
    call = [*command("--nproc_per_node", k), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p",
            "no:xdist", test, *(["-k", which] if which else [])]
    done = subprocess.run(call, cwd=ROOT, env=environment(PYTEST_ADDOPTS=""), capture_output=True,
                          encoding="utf-8", timeout=3 * HANGS)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "passed" in done.stdout or "100%" in done.stdout
