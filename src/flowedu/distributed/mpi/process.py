"""The MPI engine of a process, its start, and its end. If one rank fails, all ranks end."""
from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from pathlib import Path

from flowedu.core.sbp.ranks import Comm
from flowedu.distributed.mpi.collectives import MpiComm
from flowedu.distributed.ranks.identity import IdentifyingEngine
from flowedu.errors import CommError
from flowedu.errors.extras import install

_PACKAGE = str(Path(__file__).parents[2])


class MpiEngine(IdentifyingEngine):
    """The engine of a process that is one rank."""

    name = "mpi"

    def __init__(self, MPI):
        super().__init__()
        self.MPI = MPI
        world = MPI.COMM_WORLD
        self.size, self.owned = world.size, (world.rank,)
        here = world.Split_type(MPI.COMM_TYPE_SHARED)
        self.local_rank, self.local_size = here.rank, here.size
        leaders = sorted(set(world.allgather(here.bcast(world.rank))))
        self.node_rank, self.node_size = leaders.index(here.bcast(world.rank)), len(leaders)
        self._comm = MpiComm(MPI)

    def comm(self, rank: int) -> Comm:
        assert rank in self.owned, rank
        return self._comm

    def abort(self, code: int) -> None:
        """End all ranks."""
        sys.stdout.flush()
        sys.stderr.flush()
        # Otherwise mpiexec may end before it has printed the text.
        time.sleep(0.3)
        self.MPI.COMM_WORLD.Abort(code)


def has_mpi():
    """Return mpi4py. Raise CommError if it is not installed."""
    try:
        import mpi4py
    except ImportError as error:
        raise CommError("flow.distributed: several processes need mpi4py and an MPI library", got=str(error),
                        at="", fix=f"{install('mpi')}, or launch with --engine threads") from None
    return mpi4py


def need_mpi():
    """Return mpi4py's MPI, whose import starts MPI. Raise CommError if that fails."""
    has_mpi().rc.thread_level = "serialized"
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise CommError("flow.distributed: MPI does not start", got=str(error), at="",
                        fix=f"{install('mpi')}, which fit each other, or launch with --engine "
                            "threads") from None
    return MPI


def start() -> MpiEngine:
    """Connect this process with the others. After that an uncaught exception ends all of them."""
    engine = MpiEngine(need_mpi())
    process = os.getpid()

    def failed(kind: type, error: BaseException, tb) -> None:
        if os.getpid() != process or hasattr(sys, "ps1"):         # a prompt continues after an error
            sys.__excepthook__(kind, error, tb)
            return
        report(engine.rank, error, tb)
        engine.abort(130 if kind is KeyboardInterrupt else 1)

    def finish() -> None:
        if os.getpid() == process and not engine.MPI.Is_finalized():
            try:
                engine._comm.close()
            except BaseException as error:
                failed(type(error), error, error.__traceback__)

    sys.excepthook = failed
    atexit.register(finish)
    return engine


def report(rank: int, error: BaseException, tb) -> None:
    """Print an exception's traceback, each line with the rank before it."""
    if isinstance(error, KeyboardInterrupt):
        return
    frames = traceback.TracebackException(type(error), error, tb)
    # Report the user's lines, without the internal frames.
    if isinstance(error, CommError):
        frames.stack = traceback.StackSummary.from_list([f for f in frames.stack
                                                         if not f.filename.startswith(_PACKAGE)])
    text = "".join(frames.format())
    sys.stderr.write("".join(f"[rank {rank}] {line}\n" for line in text.rstrip().splitlines()))
    sys.stderr.flush()
