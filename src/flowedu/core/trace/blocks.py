"""Data that a graph keeps about its modules: paths, stages, and traced inputs and outputs."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from flowedu.core.layers.module import Module


@dataclass(eq=False, repr=False)
class ModuleBlock:
    """A module of a graph, with its path, its children, and its nodes.

    Attributes: name; prefix, the path of the parent and a dot; origin, the module; children; inputs
    and outputs, a line of text for each value of the first call; nodes, which its calls appended;
    stage_id and placement, for pipelines; activation_checkpointing: recompute the activations of
    this module in the backward pass instead of storing them.
    """

    name: str
    prefix: str
    origin: Module
    children: dict[str, ModuleBlock] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    nodes: list = field(default_factory=list)
    stage_id: int | None = None
    placement: object = None
    activation_checkpointing: bool = False
    debug_level: int = -1

    @property
    def path(self) -> str:
        return self.prefix + self.name

    def walk(self) -> Iterator[ModuleBlock]:
        """Yield this block, then its descendants."""
        yield self
        for child in self.children.values():
            yield from child.walk()


def make_block(kind: type[ModuleBlock], name: str, prefix: str, module: Module) -> ModuleBlock:
    """Return a block of class `kind` for a module, with blocks for its descendants."""
    block = kind(name, prefix, module)
    for key, child in module._modules.items():
        if child is not None:
            block.children[key] = make_block(kind, key, f"{prefix}{name}.", child)
    return block
