"""multiprocessing: Python's module, and `spawn`, which runs ranks as threads (flow.distributed.spawn)."""
from __future__ import annotations

from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from multiprocessing import get_context, process  # noqa: F401

from flowedu import distributed
from flowedu.errors import ArgumentError


class ProcessContext:
    """Type of the result of spawn(join=False) in PyTorch."""


SpawnContext = ProcessContext


def spawn(fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> None:
    """Call fn(i, *args) on each of nprocs ranks of `torch.distributed`.

    Ranks are threads of this process, so they share its globals. An exception in one rank ends the others
    and is raised again. join=False raises ArgumentError.
    """
    if not join:
        raise ArgumentError("multiprocessing.spawn: ranks are waited for", expected="join=True",
                            got="join=False",
                            fix="leave join away, or python -m flowedu.distributed.launch --nproc_per_node k")
    distributed.spawn(lambda: fn(distributed.get_rank(), *args) and None, nprocs)


def set_sharing_strategy(new_strategy: str) -> None:
    """Do nothing."""


def get_sharing_strategy() -> str:
    """Return 'file_system'."""
    return "file_system"


def get_all_sharing_strategies() -> set[str]:
    """Return {'file_system'}."""
    return {"file_system"}
