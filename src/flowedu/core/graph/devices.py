"""What a graph on one device leaves open, and chapter 6 fills in: how a graph runs on several.

Jobs (chapter 4) and nn.Graph (chapter 5) ask here, and know no layouts. core/sbp/connect.py says who answers.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowedu.errors import UnsupportedError


class OneDevice:
    """What a Tracer (nn/graph) asks about places, answered for tensors that all lie on one device.

    Attributes: active, whether there are global tensors; homes, {id of a parameter: how it is kept}.
    """

    active = False

    def __init__(self, tracer):
        self.tracer = tracer
        self.homes: dict[int, object] = {}

    def enter(self, value, x) -> None:
        """An input or variable of the graph stands for the tensor x."""

    def check(self, op, inputs: tuple, values: Sequence) -> None:
        """Whether these inputs may meet in an op."""

    def follow(self, values: Sequence, outputs: Sequence) -> None:
        """A node was appended that makes `outputs` of `values`."""

    def keep(self, members: Sequence, config) -> None:
        """These are the parameters of the optimizers."""

    def batch_parts(self, xs: Sequence, k: int) -> int:
        """In how many parts the batch lies on its devices, where all of it can be cut into k micro-batches so."""
        return 1

    def lay_of(self, value) -> object:
        """Where a value lies; None: nowhere in particular."""
        return None


def _none(*args) -> Any:
    raise UnsupportedError("a graph on several devices", expected="flowedu's chapter 6, which says how it runs there",
                           got="a package without it", fix="import flowedu")


spread: Callable = _none          # (graph, number of devices): rewrites a job's graph; its record
program: Callable = _none         # (a Compiled of nn.Graph with global tensors): what runs it, instead of a Program
placing: Callable = OneDevice     # (tracer): what it asks about places


def connect(**answers: Callable) -> None:
    """Who answers: functions for `spread`, `program`, `placing`."""
    globals().update(answers)
