"""What dist/infer.py finds out about a node: where it runs, how it is split, what is moved for it."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flowedu.blob.place import Place
from flowedu.dist.boxing import Route
from flowedu.dist.choose import Choice
from flowedu.dist.local import LocalCall
from flowedu.dist.sbp import Layout
from flowedu.graph.ir import GraphValue, Node


@dataclass
class Boxed:
    """A value that a reader wants in another layout than it has."""

    value: GraphValue
    route: Route


@dataclass
class Row:
    """What becomes of one node, or of one fetched value: the signature, and what has to be moved for it.

    Attributes: choice, None where there was none; node, None for a fetch; reads and makes, the layouts of inputs and
    outputs; calls, one per device of `place` (None: everybody makes the whole call); shared: what was boxed here serves
    later readers too.
    """

    name: str
    op: str
    place: Place
    signature: str
    boxed: list[Boxed] = field(default_factory=list)
    choice: Choice | None = None
    node: Node | None = None
    reads: tuple[Layout, ...] = ()
    makes: tuple[Layout, ...] = ()
    calls: Sequence[LocalCall] | None = None
    shared: bool = True

    @property
    def devices(self) -> tuple[int, ...]:
        return self.place.devices

    @property
    def bytes(self) -> int:
        return sum(b.route.bytes for b in self.boxed)
