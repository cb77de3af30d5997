"""cpu: the CPU as programs ask for devices by their module."""
from __future__ import annotations

import contextlib


def is_available() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """'cpu'."""
    return "cpu"


def synchronize(device=None) -> None:
    """Do nothing: calls on the CPU are complete when they return."""


set_device = current_stream = synchronize


def stream(stream):
    """A context in which nothing is other."""
    return contextlib.nullcontext()
