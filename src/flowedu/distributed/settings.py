"""Timeouts and checks of the communication between ranks."""
from __future__ import annotations

from flowedu.distributed.ranks.base import options
from flowedu.errors import ArgumentError


def debug(mode: bool = True) -> None:
    """Compare op, shape and dtype before each collective, also where that costs a message (default: FLOWEDU_DEBUG_COMM).

    Set it on all ranks at the same place. Between threads they are always compared.
    """
    options.debug = bool(mode)


def set_timeout(seconds: float, notice: float | None = None) -> None:
    """The seconds after which a rank that waits for others gives up (default: FLOWEDU_TIMEOUT, else 600), and, with
    `notice`, those between two lines that say for whom it waits (FLOWEDU_NOTICE, else 10)."""
    for value in (seconds, *([] if notice is None else [notice])):
        if not value > 0:
            raise ArgumentError("set_timeout: not a time", expected="more than 0 seconds", got=repr(value), fix="600")
    options.timeout = float(seconds)
    if notice is not None:
        options.notice = float(notice)
