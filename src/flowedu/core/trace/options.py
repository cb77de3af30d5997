"""Settings of a graph."""
from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from flowedu.core.values import dtype as dt


class Options:
    """Settings that the compilation of a graph reads. nn/graph/config.py adds OneFlow's setters.

    Attributes: training, True if the graph has an optimizer; accumulation, the number of
    micro-batches per call; amp, the dtype of enable_amp or None; off, names of passes that are
    switched off; one_update; zero_* and auto_* (chapter 6).
    """

    def __init__(self) -> None:
        self.training = False
        self.accumulation = 1
        self.amp: dt.dtype | None = None
        self.off: set[str] = set()
        self.zero_stage, self.zero_min_size = 0, 1024
        self.auto_parallel, self.auto_parameters, self.auto_ratio = False, False, 1.0
        self.one_update = True                     # update all parameters of a group with one op

    def computing(self) -> AbstractContextManager:
        """Return the context manager in which build runs."""
        return nullcontext()
