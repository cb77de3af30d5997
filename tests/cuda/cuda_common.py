"""Helpers of the CUDA tests: checked kernels, expected faults, and launches in separate processes."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

import flowedu as flow
from flowedu.cuda.machine import kind

in_simulator = pytest.mark.skipif(kind() != "sim", reason="what only the simulator sees")


def faulty(source, name, grid, block, *arguments, shared=0):
    """Return the fault that this launch raises."""
    with pytest.raises(flow.cuda.CudaFault) as e:
        flow.cuda.kernel(source)(name, grid, block, shared)(*arguments)
    return e.value


def line_with(source, words):
    """Return the number of the first line of `source` that contains `words`."""
    return next(i for i, line in enumerate(source.split("\n"), 1) if words in line)


def alone(script, **environment):
    """Run a script in a separate process with other simulator settings and return its output."""
    paths = os.pathsep.join([str(Path(flow.__file__).parents[1]), str(Path(__file__).parent)])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=300,
                          env={**os.environ, "PYTHONPATH": paths, **environment})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
