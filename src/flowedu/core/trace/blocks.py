"""A graph's own data about its modules: paths, stages, the inputs and outputs that the trace saw."""
from __future__ import annotations

from dataclasses import dataclass, field

from flowedu.core.layers.module import Module


@dataclass(eq=False, repr=False)
class ModuleBlock:
    """A module's place in a graph.

    Attributes: name; prefix, the path of the parent with a dot; origin; children; inputs and outputs, a line on each as
    the trace saw it first; nodes, those it appended; stage_id and placement, of a pipeline; activation_checkpointing:
    compute this module's activations again in the backward pass instead of keeping them.
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

    def walk(self):
        """This block, then those below it."""
        yield self
        for child in self.children.values():
            yield from child.walk()


def make_block(kind: type[ModuleBlock], name: str, prefix: str, module: Module) -> ModuleBlock:
    """The block of a module, a `kind`, with those below it."""
    block = kind(name, prefix, module)
    for key, child in module._modules.items():
        if child is not None:
            block.children[key] = make_block(kind, key, f"{prefix}{name}.", child)
    return block
