"""Communication hooks of DistributedDataParallel, which would change gradients before they are exchanged.

Libraries import the names. flowedu exchanges gradients unchanged, so using any other hook raises
UnsupportedError.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from flowedu.errors import UnsupportedError


def _refused(name: str) -> NoReturn:
    raise UnsupportedError(f"{name}: DistributedDataParallel sends gradients as they are", expected="no hook, or "
                           "allreduce_hook", got=name, fix="leave register_comm_hook out: ranks then exchange their mean")


def _hook(name: str) -> Callable:
    def f(*args, **kwargs) -> NoReturn:
        _refused(name)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = "UnsupportedError: gradients are sent as they are."
    return f


NAMES = ("allreduce_hook", "fp16_compress_hook", "bf16_compress_hook", "fp16_compress_wrapper", "bf16_compress_wrapper",
         "PowerSGDState", "powerSGD_hook", "batched_powerSGD_hook", "noop_hook")
globals().update({name: _hook(name) for name in NAMES})
__all__ = [*NAMES]


def registered(state, hook: Callable) -> None:
    """Nothing for allreduce_hook, the mean over ranks, which is taken anyway. UnsupportedError for others."""
    if hook is not globals()["allreduce_hook"]:
        _refused(getattr(hook, "__name__", repr(hook)))
