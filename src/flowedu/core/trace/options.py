"""Options: the settings of one graph."""
from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from flowedu.core.values import dtype as dt


class Options:
    """Read when the graph is compiled. nn.Graph's (nn/graph/config.py) are set by OneFlow's names.

    Attributes: training, whether the graph has an optimizer; accumulation, micro-batches in one call; amp, the dtype of
    enable_amp or None; off, names of passes that are switched off; one_update; of chapter 6: zero_stage, auto_parallel.
    """

    def __init__(self):
        self.training = False
        self.accumulation = 1
        self.amp: dt.dtype | None = None
        self.off: set[str] = set()
        self.zero_stage, self.zero_min_size = 0, 1024
        self.auto_parallel, self.auto_parameters, self.auto_ratio = False, False, 1.0
        self.outputs_buffer_size = 2
        self.one_update = True                     # of all parameters of a group, by one call

    def computing(self) -> AbstractContextManager:
        """The context manager that build runs in."""
        return nullcontext()
