"""Helpers that run a function on ranks that are threads, or a script on ranks that are processes."""
import os
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

import flowedu
from common import HANGS
from flowedu.core.sbp.ranks import current
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
    """Mark a test that starts processes with mpiexec."""
    return pytest.mark.mpi(pytest.mark.skipif(not has_mpi(), reason="needs flowedu[mpi]")(f))


def comm():
    """Return this rank's communicator."""
    return current().comm(current().rank)


def on_threads(k: int, f, *args) -> list:
    """Run f(comm, *args) on k ranks."""
    return spawn(lambda: f(comm(), *args), k)


class Said:
    """Output of a launch (out, err), and its exit code."""

    def __init__(self, done: subprocess.CompletedProcess):
        self.out, self.err, self.code = done.stdout, done.stderr, done.returncode


def command(*options) -> list[str]:
    return [sys.executable, "-m", "flowedu.distributed.launch", *map(str, options)]


def environment(**env) -> dict:
    inherited = {k: v for k, v in os.environ.items() if k not in ("FLOWEDU_NUM_THREADS", "OMP_NUM_THREADS")}
    return {**inherited, "PYTHONPATH": SRC, **env}


def launch(folder: Path, script: str, k: int, *options, args=(), env=None, timeout: float = HANGS,
           name="script.py") -> Said:
    """Start `script` on k ranks by the launcher. A script that fails to end runs into `timeout`: ranks wait
    longer for each other, unless `env` sets another limit.
    """
    file = folder / name
    file.write_text(textwrap.dedent(script), encoding="utf-8")
    env = environment(**{"FLOWEDU_TIMEOUT": str(10 * HANGS), **(env or {})})
    return Said(run_command(command("--nproc_per_node", k, *options, file, *args), timeout, cwd=folder,
                            env=env))


def run_command(cmd: list[str], timeout: float = HANGS, **more) -> subprocess.CompletedProcess:
    """Return a command's output as text."""
    return subprocess.run(cmd, **{"capture_output": True, "text": True, "stdin": subprocess.DEVNULL,
                                  "timeout": timeout, "env": environment(), **more})
