"""Timeouts and checks of the communication between ranks."""
from __future__ import annotations

from flowedu.distributed.ranks.base import options
from flowedu.errors import ArgumentError


def debug(mode: bool = True) -> None:
    """Compare op, shape, and dtype before each collective, even if that costs a message.

    Set it on all ranks at the same position of the program. Threads always compare their calls.

    Args:
        mode: True or False; default: the environment variable FLOWEDU_DEBUG_COMM.
    """
    options.debug = bool(mode)


def set_timeout(seconds: float, notice: float | None = None) -> None:
    """Set the time after which a rank that waits for others raises an error.

    Args:
        seconds: the timeout in seconds; default: FLOWEDU_TIMEOUT, else 600.
        notice: the seconds between two messages that name the missing ranks; None does not change them
            (FLOWEDU_NOTICE, else 10).
    """
    for value in (seconds, *([] if notice is None else [notice])):
        if not value > 0:
            raise ArgumentError("set_timeout: not a time", expected="more than 0 seconds", got=repr(value),
                                fix="600")
    options.timeout = float(seconds)
    if notice is not None:
        options.notice = float(notice)
