"""Boxes of a graph's diagram."""
from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False)
class Box:
    """One box: an op, an input, a variable, or an output.

    Attributes: module, the path of its submodule, such as ("features", "0"); reads, the boxes of its inputs;
    layer, its row from the top; x, its horizontal position in units of boxes.
    """

    title: str
    subtitle: str
    kind: str
    tip: str
    module: tuple[str, ...] = ()
    reads: list[Box] = field(default_factory=list)
    layer: int = 0
    x: float = 0.0
