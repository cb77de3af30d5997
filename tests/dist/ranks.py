"""For tests: run a function on ranks that are threads, or a script on ranks that are processes."""
import os
import subprocess
import sys
import textwrap
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

import flowedu
from flowedu.dist.comm.base import current
from flowedu.distributed import spawn

SRC = str(Path(flowedu.__file__).parents[1])
TESTS = str(Path(__file__).parents[1])


def has_mpi() -> bool:
    from flowedu.distributed.launch import mpiexec
    from flowedu.errors import CommError

    try:
        return find_spec("mpi4py") is not None and bool(mpiexec())
    except CommError:
        return False


def mpi(f):
    """Marks a test that starts processes with mpiexec."""
    return pytest.mark.mpi(pytest.mark.skipif(not has_mpi(), reason="needs flowedu[mpi]")(f))


def comm():
    """This rank's end."""
    return current().comm(current().rank)


def on_threads(k: int, f, *args) -> list:
    """f(comm, *args) on k ranks."""
    return spawn(lambda: f(comm(), *args), k)


class Said:
    """What a launch printed (out, err), its exit code and the seconds it took."""

    def __init__(self, done: subprocess.CompletedProcess, seconds: float):
        self.out, self.err, self.code, self.seconds = done.stdout, done.stderr, done.returncode, seconds


def command(*options) -> list[str]:
    return [sys.executable, "-m", "flowedu.distributed.launch", *map(str, options)]


def environment(**env) -> dict:
    inherited = {k: v for k, v in os.environ.items() if k not in ("FLOWEDU_NUM_THREADS", "OMP_NUM_THREADS")}
    return {**inherited, "PYTHONPATH": SRC, **env}


def launch(folder: Path, script: str, k: int, *options, args=(), env=None, timeout: float = 600, name="script.py") -> Said:
    """`script` on k ranks, started by the launcher."""
    file = folder / name
    file.write_text(textwrap.dedent(script))
    start = time.monotonic()
    done = run(command("--nproc_per_node", k, *options, file, *args), timeout, cwd=folder, env=environment(**(env or {})))
    return Said(done, time.monotonic() - start)


def run(cmd: list[str], timeout: float = 600, **more) -> subprocess.CompletedProcess:
    """A command's output, as text."""
    return subprocess.run(cmd, **{"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": timeout,
                                  "env": environment(), **more})
