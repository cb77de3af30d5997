"""Which nn.Graph this thread builds, if any: `trace.current`. Module.__call__ asks here: it needs no import of chapter 5.

While nobody builds, `current` is a plain None, which costs nothing to ask. While some thread does, the name is gone, and
`__getattr__` answers for the thread that asks.
"""
from __future__ import annotations

import threading

current = None
_here, _lock, _building = threading.local(), threading.Lock(), 0


def __getattr__(name: str):
    if name != "current":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_here, "tracer", None)              # the Tracer in charge (core/trace/tracer.py)


def begin(tracer) -> None:
    """Let this thread build with `tracer`."""
    global _building
    with _lock:
        _here.tracer = tracer
        _building += 1
        globals().pop("current", None)


def end() -> None:
    """This thread builds no more."""
    global _building, current
    with _lock:
        _here.tracer = None
        _building -= 1
        if not _building:
            current = None
