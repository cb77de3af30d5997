"""distributed.algorithms: Join, for ranks with different numbers of batches.

Hooks: torch_comm_hooks.py.
"""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.errors import UnsupportedError
from flowedu.mock.insides.torch_parallel import DistributedDataParallel

__all__ = ["Join"]


class Join:
    """Equivalent of join() of one DistributedDataParallel. Other arguments raise UnsupportedError."""

    def __init__(self, joinables: Sequence[DistributedDataParallel], enable: bool = True,
                 throw_on_early_termination: bool = False, **kwargs):
        if len(joinables) != 1 or not isinstance(joinables[0], DistributedDataParallel):
            raise UnsupportedError("Join: this cannot be joined", expected="[a DistributedDataParallel]",
                                   got=f"[{', '.join(type(j).__name__ for j in joinables)}]",
                                   fix="one module that holds all others, in one DistributedDataParallel")
        self._context = joinables[0].join(enable=enable,
                                          throw_on_early_termination=throw_on_early_termination, **kwargs)

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(self, *error) -> bool | None:
        return self._context.__exit__(*error)
