"""Placement for graphs on one device. distributed/graph replaces it for several (chapter 6)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core import extensions
from flowedu.core.graph.ir import GraphValue
from flowedu.core.ops.define import Op
from flowedu.errors import graphs as errors


class OneDevice:
    """Placement rules of a Tracer (core/trace) for a graph on a single device.

    `active` is True for a graph with global tensors. `homes`: {id of a parameter: layout}. `place`
    is the device (Block.device: 0 for main memory, 1 + n for GPU n). `first` names a value on it.
    """

    active = False

    def __init__(self, tracer: Any):
        self.tracer = tracer
        self.homes: dict[int, object] = {}
        self.place, self.first = 0, ""

    def enter(self, value: GraphValue, x: Any) -> None:
        """Check the device of an input or variable `x`. 0-d CPU variables work with any device."""
        if x.global_layout is not None:
            _ = extensions.global_graph            # raises UnsupportedError if it is missing
        if not (x._device or x.ndim or value.kind == "input"):
            return
        if not self.first:
            self.place, self.first = x._device, value.name
        if x._device != self.place:
            raise errors.mixed_devices(self, value.name, x._device)

    def check(self, op: Op, inputs: tuple, values: Sequence) -> None:
        """Raise an error if the inputs of an op are on devices that it cannot combine."""

    def follow(self, values: Sequence, outputs: Sequence) -> None:
        """Record the placement of `outputs`, which a new node computes from `values`."""

    def keep(self, members: Sequence, config: object) -> None:
        """Choose how the parameters of the optimizers are stored."""

    def batch_parts(self, xs: Sequence, k: int) -> int:
        """Return how many device parts a batch of `k` micro-batches is split into."""
        return 1

    def layout_of(self, value: GraphValue) -> object:
        """Return the global layout of a value, or None for a local value."""
        return None


def device_name(place: int) -> str:
    return f"cuda:{place - 1}" if place else "cpu"


def need_cpu(context: str, name: str, x: Any) -> None:
    """Raise UnsupportedError if tensor or Array `x` is on a GPU. context: the graph's name."""
    global_layout = getattr(x, "global_layout", None)
    if x._device or global_layout is not None and global_layout.placement.type == "cuda":
        where = device_name(x._device) if global_layout is None else str(global_layout.placement)
        raise errors.cpu_only(context, name, where, x)
