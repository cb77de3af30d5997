"""Here: what surrounds a line of code in its thread, in one place. `print(here)` says what the thread is in the middle of.

A chapter has its fields below, and sets them for the length of a block: `with during(tracer=t):`. (Two switches that every
call reads, whether gradients are recorded and whether tensors are made for inference, are C's: core/eager/switches.pxi. The
session of jobs is the process's.)
"""
from __future__ import annotations

import threading
from typing import Any

building = 0                         # how many threads have a tracer: while it is 0, no call of a module looks for one
changes = 0                          # advances where what a build may have read is written: an attribute, a mode, a seed


class Here(threading.local):
    """Each thread sees its own values; a new thread starts with these."""

    interpreters: tuple = ()         # chapter 2: who answers calls of ops; the last is in charge, none: eager
    states: Any = None               # chapter 7: what host ops remember (ops/host.py); None: the eager ones
    draws: list | None = None        # its own row of the default generator (tensor/generator.py); None: the shared one
    amp: Any = None                  # chapter 5: f(op, inputs), inputs in the types the op computes in (flowedu/nn/amp)
    context: Any = None              # chapters 3 and 4: what layers get variables and names from; None: the eager one
    plans: int = 0                   # chapter 4: how many plans with Python kernels it is in the middle of
    tracer: Any = None               # chapter 5: the nn.Graph being built
    engine: Any = None               # chapter 6: the ranks it computes with; None: those of the process
    strict: bool = False             # chapter 6: no boxing by itself
    rule: str = "bytes"              # chapter 6: how layouts are chosen (core/sbp/rules.py)
    heard: list | None = None        # chapter 6: choices of layouts are told to it
    gpu: Any = None                  # chapter 8: the context of its current GPU
    streams: dict | None = None      # chapter 8: {GPU: the stream its work is queued on}; others: the default stream

    def __repr__(self) -> str:
        special = [f"{k} = {getattr(self, k)!r}" for k in Here.__annotations__ if getattr(self, k) != getattr(Here, k)]
        return f"here: {', '.join(special) or 'nothing special'}"


here = Here()


class during:
    """Context manager: inside it, in this thread, `here` has these values. AttributeError: Here has no such field."""

    def __init__(self, **values: Any):
        self.values = values

    def __enter__(self) -> Here:
        self.outer = {name: getattr(here, name) for name in self.values}
        self._set(self.values)
        return here

    def __exit__(self, *exc) -> None:
        self._set(self.outer)

    def _set(self, values: dict[str, Any]) -> None:
        global building
        if "tracer" in values:
            with _lock:
                building += (values["tracer"] is not None) - (here.tracer is not None)
        for name, value in values.items():
            setattr(here, name, value)


_lock = threading.Lock()
