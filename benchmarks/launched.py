"""Run scripts on two ranks, which are processes with MPI and threads without, and time calls on a rank."""
from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec


def has_mpi() -> bool:
    """Return True if ranks can be processes on this machine."""
    from flowedu.distributed.launch import mpiexec
    from flowedu.errors import CommError
    try:
        return find_spec("mpi4py") is not None and bool(mpiexec())
    except CommError:
        return False


def launch(engine: str, *args) -> str:
    """Run a script on two ranks and return its output."""
    env = {k: v for k, v in os.environ.items() if k not in ("FLOWEDU_NUM_THREADS", "OMP_NUM_THREADS")}
    command = [sys.executable, "-m", "flowedu.distributed.launch", "--nproc_per_node", "2",
               "--engine", engine]
    done = subprocess.run([*command, *map(str, args)], capture_output=True,
                          encoding="utf-8", stdin=subprocess.DEVNULL, env=env,
                          timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def calls_of(nbytes: int) -> int:
    """Return the number of calls per timing."""
    return max(1, min(300, (100 << 20) // max(nbytes, 1) // 30))


def timed(f: Callable[[], object], calls: int, barrier: Callable[[], object]) -> float:
    """Return the seconds per call of f, which all ranks call, after some warm-up calls."""
    barrier()
    for _ in range(max(2, calls // 10)):
        f()
    barrier()
    start = time.perf_counter()
    for _ in range(calls):
        f()
    return (time.perf_counter() - start) / calls
