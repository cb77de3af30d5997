"""The state of a thread, in one place: its active contexts. `print(thread_state)` says which.

The file that owns a field registers it, and sets it for the length of a block: `with during(tracer=t):`. (Two switches that
every call reads, whether gradients are recorded and whether tensors are made for inference, are C's:
core/eager/switches.pxi. The session of jobs is the process's.)
"""
from __future__ import annotations

import threading
from typing import Any

building = 0                         # how many threads have a tracer: while it is 0, no call of a module looks for one
changes = 0                          # advances where what a build may have read is written: an attribute, a mode, a seed


class ThreadState(threading.local):
    """Each thread sees its own values; a new thread starts with the defaults."""

    def __repr__(self) -> str:
        special = [f"{k} = {getattr(self, k)!r}" for k, default in FIELDS.items() if getattr(self, k) != default]
        return f"thread_state: {', '.join(special) or 'nothing special'}"


FIELDS: dict[str, Any] = {}          # {field: its default}


def register_fields(**defaults: Any) -> None:
    """Give the state of every thread these fields. Each is registered once, by the file that owns it."""
    FIELDS.update(defaults)
    for name, default in defaults.items():
        setattr(ThreadState, name, default)


thread_state = ThreadState()


class during:
    """Context manager: inside it, in this thread, `thread_state` has these values. AttributeError: it has no such field."""

    def __init__(self, **values: Any):
        self.values = values

    def __enter__(self) -> ThreadState:
        self.outer = {name: getattr(thread_state, name) for name in self.values}
        self._set(self.values)
        return thread_state

    def __exit__(self, *exc) -> None:
        self._set(self.outer)

    def _set(self, values: dict[str, Any]) -> None:
        global building
        if "tracer" in values:
            with _lock:
                building += (values["tracer"] is not None) - (thread_state.tracer is not None)
        for name, value in values.items():
            setattr(thread_state, name, value)


_lock = threading.Lock()
