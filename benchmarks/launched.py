"""Scripts on two ranks of this machine: processes where there is MPI, else threads."""
from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec


def has_mpi() -> bool:
    """Whether ranks can be processes here."""
    from flowedu.distributed.launch import mpiexec
    from flowedu.errors import CommError
    try:
        return find_spec("mpi4py") is not None and bool(mpiexec())
    except CommError:
        return False


def launch(engine: str, *args) -> str:
    """What a script on two ranks prints."""
    env = {k: v for k, v in os.environ.items() if k not in ("FLOWEDU_NUM_THREADS", "OMP_NUM_THREADS")}
    command = [sys.executable, "-m", "flowedu.distributed.launch", "--nproc_per_node", "2", "--engine", engine]
    done = subprocess.run([*command, *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env,
                          timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout
