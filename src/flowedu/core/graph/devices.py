"""Where the values of a graph lie, if they all lie on one device. Chapter 6 answers for several (distributed/graph)."""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.extensions import extension
from flowedu.errors import DeviceError, UnsupportedError


class OneDevice:
    """What a Tracer (core/trace) asks about places, answered for tensors that all lie on one device.

    Attributes: active, whether there are global tensors; homes, {id of a parameter: how it is kept}; place, the device of
    inputs and variables (Block.device: 0, main memory, or 1 + the GPU's number).
    """

    active = False

    def __init__(self, tracer):
        self.tracer = tracer
        self.homes: dict[int, object] = {}
        self.place, self.first = 0, ""                     # and the name of the first value there

    def enter(self, value, x) -> None:
        """An input or variable of the graph stands for the tensor x. (A 0-d variable on the CPU may join any device.)"""
        if x.global_layout is not None:
            extension("a graph of global tensors")             # raises where there is none
        if not (x._device or x.ndim or value.kind == "input"):
            return
        if not self.first:
            self.place, self.first = x._device, value.name
        if x._device != self.place:
            raise DeviceError(f"{self.tracer.graph.name}: Expected all tensors to be on the same device",
                              expected="one device for inputs, parameters and buffers",
                              got=f"{self.first} is on {device_name(self.place)}, {value.name} on {device_name(x._device)}",
                              fix='module.to("cuda") and x.to("cuda") bring them there')

    def check(self, op, inputs: tuple, values: Sequence) -> None:
        """Whether these inputs may meet in an op."""

    def follow(self, values: Sequence, outputs: Sequence) -> None:
        """A node was appended that makes `outputs` of `values`."""

    def keep(self, members: Sequence, config) -> None:
        """These are the parameters of the optimizers."""

    def batch_parts(self, xs: Sequence, k: int) -> int:
        """In how many parts the batch lies on its devices, where all of it can be cut into k micro-batches so."""
        return 1

    def layout_of(self, value) -> object:
        """Where a value lies; None: nowhere in particular."""
        return None


def device_name(place: int) -> str:
    return f"cuda:{place - 1}" if place else "cpu"


def need_cpu(what: str, name: str, x) -> None:
    """Raise UnsupportedError for a tensor (or Array) on a GPU, where what is computed, or the graph, is on the CPU."""
    global_layout = getattr(x, "global_layout", None)
    if x._device or global_layout is not None and global_layout.placement.type == "cuda":
        where = device_name(x._device) if global_layout is None else str(global_layout.placement)
        raise UnsupportedError(f"{what}: {name} is on {where}, and this runs on the CPU", got=f"{x.dtype.name}"
                               f"{list(x.shape)} on {where}", expected="tensors on the CPU",
                               fix="x.cpu(), module.cpu(); a graph made anew runs where its tensors are")
