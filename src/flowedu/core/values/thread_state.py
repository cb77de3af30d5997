"""The state of a thread: its active contexts. `print(thread_state)` omits fields with defaults.

The module that owns a field registers it, and sets it for a block by `with during(tracer=t):`. The
switches that every call reads, such as gradient recording and inference mode, are C variables in
core/eager/dispatch.pyx. The session of jobs belongs to the process, not to a thread.
"""
from __future__ import annotations

import threading
from typing import Any

building = 0         # number of threads that trace an nn.Graph; if 0, modules look up no tracer
changes = 0          # number of writes to state that nn.Graph.build may read: attributes, seeds ...


class ThreadState(threading.local):
    """Fields with one value per thread; a new thread starts with the defaults."""

    def __repr__(self) -> str:
        special = [f"{k} = {getattr(self, k)!r}" for k, default in FIELDS.items()
                   if getattr(self, k) != default]
        return f"thread_state: {', '.join(special) or 'nothing special'}"


FIELDS: dict[str, Any] = {}          # {field: its default}


def register_fields(**defaults: Any) -> None:
    """Add fields to the state of every thread. The file that owns a field registers it once."""
    FIELDS.update(defaults)
    for name, default in defaults.items():
        setattr(ThreadState, name, default)


thread_state = ThreadState()


class during:
    """Context manager that sets fields of `thread_state`. Unknown fields raise AttributeError."""

    def __init__(self, **values: Any):
        self.values = values

    def __enter__(self) -> ThreadState:
        self.outer = {name: getattr(thread_state, name) for name in self.values}
        self._set(self.values)
        return thread_state

    def __exit__(self, *exc: object) -> None:
        self._set(self.outer)

    def _set(self, values: dict[str, Any]) -> None:
        global building
        if "tracer" in values:
            with _lock:
                building += (values["tracer"] is not None) - (thread_state.tracer is not None)
        for name, value in values.items():
            setattr(thread_state, name, value)


_lock = threading.Lock()
