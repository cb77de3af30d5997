"""Boxing as nodes of a rank's graph.

These nodes keep their position in the order of a graph, and are never merged or removed, because their
partners on other ranks wait for them.
"""
from __future__ import annotations

from flowedu.core.ops.define import Op
from flowedu.core.ops.record import Effects, Kernel, Laws, Meaning, read
from flowedu.core.sbp.ranks import Comm


class End:
    """The connection of a rank's boxing nodes. The code that runs the graph sets its communicator."""

    def __init__(self, rank: int):
        self.rank = rank
        self.comm: Comm | None = None

    def __repr__(self) -> str:
        return f"rank {self.rank}"


def record(signature: str, meaning: Meaning, doc: str) -> Op:
    """Return a record that is not in the registry.

    The tests of the registry run each op alone, but these ops need partners on other ranks.
    """
    return Op(read(signature), meaning, Kernel(trusted=True), Effects(fresh=True, effect=True),
              Laws(float_only=False), doc=doc)


def letters(n: int, first: str) -> str:
    return "".join(chr(ord(first) + i) for i in range(n))


def _send(x, route, end):
    route.perform(end.comm, x)
    return ()


SPEC = dict(shape=lambda spec: spec.shape, dtype=lambda spec: spec.dtype)
box = record("box(x, *, route, end, spec) -> y",
             Meaning(lambda x, spec: f"{letters(x.ndim, 'A')}->{letters(len(spec.shape), 'N')}",
                     lambda x, route, end: route.perform(end.comm, x), **SPEC),
             doc="This rank's part of a value, brought into another layout.")
box_in = record("box_in(*, route, end, spec) -> y",
                Meaning(lambda spec: f"->{letters(len(spec.shape), 'N')}",
                        lambda route, end: route.perform(end.comm, None), **SPEC),
                doc="A part of a value that other ranks have.")
box_out = record("box_out(x, *, route, end) -> ()", Meaning(lambda x: f"{letters(x.ndim, 'A')}->", _send,
                                                            shape=lambda: ()),
                 doc="This rank's part of a value, for other ranks.")
