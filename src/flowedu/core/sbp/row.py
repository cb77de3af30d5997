"""What core/sbp/infer.py finds out about a node: where it runs, how it is split, what is moved for it."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flowedu.core.graph.ir import GraphValue, Node
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.core.sbp.choose import Choice
from flowedu.core.sbp.local import LocalCall
from flowedu.core.sbp.sbp import Layout
from flowedu.core.values.place import Place


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
