"""The modules of a graph. A module assigned to a graph becomes a ProxyModule: called, it is the module; asked for
`.to(GraphModule)` it gives the block, which knows what only the graph knows: its path, its stage, what the trace saw.
"""
from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from flowedu.core.layers import trace
from flowedu.core.layers.module import Module
from flowedu.core.ops.tensor import Tensor
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


@dataclass(frozen=True)
class GraphTensor:
    """What the graph knows of a parameter or buffer: its path and which of the two it is."""

    name: str
    type: str


def make_block(name: str, prefix: str, module: Module) -> GraphModule:
    block = GraphModule(name, prefix, module)
    for key, child in module._modules.items():
        if child is not None:
            block.children[key] = make_block(key, f"{prefix}{name}.", child)
    return block


class ProxyModule:
    """What `graph.model` gives: the module, with `.to(GraphModule)` besides."""

    def __init__(self, block: GraphModule):
        object.__setattr__(self, "_block", block)

    def to(self, *args, **kwargs):
        """to(nn.Module): the module itself; to(GraphModule): its block; anything else goes to the module."""
        if len(args) == 1 and isinstance(args[0], type):
            if issubclass(args[0], GraphModule):
                return self._block
            if issubclass(args[0], Module):
                return self._block.origin
        self._block.origin.to(*args, **kwargs)
        return self

    def __call__(self, *args, **kwargs):
        return self._block.origin(*args, **kwargs)

    def __getattr__(self, name: str):
        block = self._block
        value = getattr(block.origin, name)
        if isinstance(value, Module) and name in block.children:
            return ProxyModule(block.children[name])
        if isinstance(value, Tensor) and trace.current is None:
            for kind, table in (("PARAMETER", block.origin._parameters), ("BUFFER", block.origin._buffers)):
                if name in table:
                    return ProxyTensor(value, GraphTensor(f"{block.path}.{name}", kind))
        return value

    def __setattr__(self, name: str, value) -> None:
        setattr(self._block.origin, name, value)

    def __getitem__(self, key):
        keys = list(self._block.children)
        if isinstance(key, slice):
            return [ProxyModule(self._block.children[k]) for k in keys[key]]
        return ProxyModule(self._block.children[key if isinstance(key, str) else keys[key]])

    def __len__(self) -> int:
        return len(self._block.origin)

    def __iter__(self):
        return (ProxyModule(b) for b in self._block.children.values())

    def state_dict(self, *args, **kwargs) -> ProxyState:
        return ProxyState(self._block.origin.state_dict(*args, **kwargs))

    def __repr__(self) -> str:
        return f"(PROXY:{self._block.path}:{self._block.origin._shallow_repr()})"


class ProxyTensor:
    """What `graph.model.weight` gives outside build: `.to(flow.Tensor)` is the tensor, `.to(GraphTensor)` its name and
    kind. All else is asked of the tensor."""

    def __init__(self, tensor: Tensor, handle: GraphTensor):
        self._tensor, self._handle = tensor, handle

    def to(self, *args, **kwargs):
        if len(args) == 1 and isinstance(args[0], type):
            return self._handle if issubclass(args[0], GraphTensor) else self._tensor
        return self._tensor.to(*args, **kwargs)

    def __getattr__(self, name: str):
        return getattr(self._tensor, name)

    def __repr__(self) -> str:
        return f"({self._handle.type}:{self._handle.name}:{self._tensor!r})"


class ProxyState(OrderedDict):
    """The state_dict of a proxy. flow.save refuses it (state.py): a graph's state is more than its modules'."""
