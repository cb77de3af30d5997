"""multiprocessing: Python's, and `spawn`, whose processes are ranks: threads of this one (flow.distributed.spawn)."""
from __future__ import annotations

from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from multiprocessing import get_context, process  # noqa: F401

from flowedu import distributed
from flowedu.errors import ArgumentError
from flowedu.oneflow04.job import env


class ProcessContext:
    """What spawn(join=False) returns in PyTorch."""


SpawnContext = ProcessContext


def spawn(fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> None:
    """fn(i, *args) for each of nprocs ranks, which `torch.distributed` knows as such.

    Ranks are threads of this process: they share its globals. An exception in one rank ends the others, and
    is re-raised.
    Errors: ArgumentError for join=False."""
    if not join:
        raise ArgumentError("multiprocessing.spawn: ranks are waited for", expected="join=True", got="join=False",
                            fix="leave join away, or python -m flowedu.distributed.launch --nproc_per_node k")
    distributed.spawn(lambda: fn(env.get_rank(), *args) and None, nprocs)


def set_sharing_strategy(new_strategy: str) -> None:
    """Nothing."""


def get_sharing_strategy() -> str:
    """'file_system'."""
    return "file_system"


def get_all_sharing_strategies() -> set[str]:
    """{'file_system'}."""
    return {"file_system"}
