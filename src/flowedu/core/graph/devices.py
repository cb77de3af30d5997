"""Where the values of a graph lie, if they all lie on one device. Chapter 6 answers for several (core/sbp/graph)."""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.errors import UnsupportedError


class OneDevice:
    """What a Tracer (core/trace) asks about places, answered for tensors that all lie on one device.

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


def need_cpu(what: str, name: str, x) -> None:
    """Raise UnsupportedError for a tensor (or Array) whose memory is a GPU's: graphs are on the CPU."""
    lay = getattr(x, "lay", None)
    if x.place_ or lay is not None and lay.placement.type == "cuda":
        where = f"cuda:{x.place_ - 1}" if lay is None else str(lay.placement)
        raise UnsupportedError(f"{what}: {name} is on {where}, and this runs on the CPU", got=f"{x.dtype.name}"
                               f"{list(x.shape)} on {where}", expected="tensors on the CPU",
                               fix='x.cpu(), module.cpu(); or call the module itself, which runs on "cuda"')
