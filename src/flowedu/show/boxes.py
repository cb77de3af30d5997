"""Boxes of a graph's diagram."""
from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False)
class Box:
    """One box: an op, an input, a variable or an output. `module`: the part of the model it belongs to, ("features", "0").
    `reads`: boxes above; `layer`, `x`: where it is, `x` in boxes."""

    title: str
    subtitle: str
    kind: str
    tip: str
    module: tuple[str, ...] = ()
    reads: list[Box] = field(default_factory=list)
    layer: int = 0
    x: float = 0.0
