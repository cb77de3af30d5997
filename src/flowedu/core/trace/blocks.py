"""What a graph knows of its modules and they do not: paths, stages, what the trace saw."""
from __future__ import annotations

from dataclasses import dataclass, field

from flowedu.core.layers.module import Module
from flowedu.errors import ArgumentError


@dataclass(eq=False, repr=False)
class GraphModule:
    """A module's place in a graph.

    Attributes: name; prefix, the path of the parent with a dot; origin; children; inputs and outputs, a line on each as
    the trace saw it first; nodes, those it appended; stage_id and placement (see set_stage); activation_checkpointing:
    compute this module's activations again in the backward pass instead of keeping them.
    """

    name: str
    prefix: str
    origin: Module
    children: dict[str, GraphModule] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    nodes: list = field(default_factory=list)
    stage_id: int | None = None
    placement: object = None
    activation_checkpointing: bool = False
    debug_level: int = -1

    type = "MODULE"

    @property
    def path(self) -> str:
        return self.prefix + self.name

    @property
    def name_prefix(self) -> str:
        return self.prefix

    def set_stage(self, stage_id: int | None = None, placement=None) -> None:
        """Which stage of a pipeline this module is, and on which devices: what it is called on is brought there, where it
        is a global tensor. (The parameters are placed with to_global.)"""
        if stage_id is not None and (not isinstance(stage_id, int) or stage_id < 0):
            raise ArgumentError(f"set_stage of {self.path}: stage_id", expected="0, 1, 2, ...", got=repr(stage_id))
        if placement is not None and not hasattr(placement, "hierarchy"):
            raise ArgumentError(f"set_stage of {self.path}: placement", expected="flow.placement(type, ranks)",
                                got=repr(placement), fix='flow.placement("cpu", [0, 1])')
        self.stage_id, self.placement = stage_id, placement

    def debug(self, v_level: int = 0, **options) -> None:
        """Graph.debug for this module and those below it."""
        for block in self.walk():
            block.debug_level = v_level

    def walk(self):
        """This block, then those below it."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def __repr__(self) -> str:
        return f"({self.handle_repr})"

    @property
    def handle_repr(self) -> str:
        """`GraphModule:model(stage_id=0)`, as print(graph) shows it."""
        said = ([f"stage_id={self.stage_id}, "] if self.stage_id is not None else [])
        said += ["activation_checkpointing=True, "] if self.activation_checkpointing else []
        return f"GraphModule:{self.path}({''.join(said)})"


def make_block(name: str, prefix: str, module: Module) -> GraphModule:
    block = GraphModule(name, prefix, module)
    for key, child in module._modules.items():
        if child is not None:
            block.children[key] = make_block(key, f"{prefix}{name}.", child)
    return block
