"""Communication hooks of DistributedDataParallel, which transform gradients before they are exchanged.

Libraries import the names. flowedu exchanges gradients unchanged, so using any other hook raises
UnsupportedError.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from flowedu.errors import UnsupportedError


def _refuse(name: str) -> NoReturn:
    raise UnsupportedError(f"{name}: DistributedDataParallel sends gradients as they are",
                           expected="no hook, or allreduce_hook", got=name,
                           fix="leave register_comm_hook out: ranks then exchange their mean")


def _hook(name: str) -> Callable:
    def f(*args, **kwargs) -> NoReturn:
        _refuse(name)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = "UnsupportedError: gradients are sent as they are."
    return f


NAMES = ("allreduce_hook", "fp16_compress_hook", "bf16_compress_hook", "fp16_compress_wrapper",
         "bf16_compress_wrapper", "PowerSGDState", "powerSGD_hook", "batched_powerSGD_hook", "noop_hook")
globals().update({name: _hook(name) for name in NAMES})
__all__ = [*NAMES]


def registered(state, hook: Callable) -> None:
    """Accept allreduce_hook, the default (mean over ranks). Raise UnsupportedError for others."""
    if hook is not globals()["allreduce_hook"]:
        _refuse(getattr(hook, "__name__", repr(hook)))
