"""Proxies of the modules of a graph.

A module assigned to a graph becomes a ProxyModule. Calling it calls the module. `.to(GraphModule)` returns
the block, which contains the graph's own data about the module: its path, its stage, and the values in the
trace.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsIndex

from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.module import Module
from flowedu.core.trace.blocks import ModuleBlock
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import ArgumentError
from flowedu.nn.containers import ModuleDict
from flowedu.nn.graph.changes import refresh
from flowedu.nn.parameter_lists import ParameterDict, ParameterList
from flowedu.saving.graph import ProxyState


class GraphModule(ModuleBlock):
    """Graph-specific data of a module: `graph.model.to(nn.graph.GraphModule)`.

    Args:
        name: name of the module in its parent.
        prefix: path of the parent, with a dot at the end.
        origin: the module.
        children: blocks of the child modules; default: none.
        inputs, outputs: names of the values of the first call; default: none.
        nodes: nodes of the module in the trace; default: none.
        stage_id: pipeline stage; default: none.
        placement: devices of the module; default: none.
        activation_checkpointing: compute activations again in the backward pass.
        debug_level: verbosity, see Graph.debug.
    """

    type = "MODULE"

    @property
    def name_prefix(self) -> str:
        return self.prefix

    def set_stage(self, stage_id: int | None = None, placement=None) -> None:
        """Set the pipeline stage of this module, and its devices.

        Global tensors passed to the module are moved to these devices. set_stage does not move the
        parameters; use to_global for them.

        Args:
            stage_id: number of the stage, from 0; default: unchanged.
            placement: flow.placement; default: unchanged.
        """
        if stage_id is not None and (not isinstance(stage_id, int) or stage_id < 0):
            raise ArgumentError(f"set_stage of {self.path}: stage_id", expected="0, 1, 2, ...",
                                got=repr(stage_id))
        if placement is not None and not hasattr(placement, "hierarchy"):
            raise ArgumentError(f"set_stage of {self.path}: placement",
                                expected="flow.placement(type, ranks)",
                                got=repr(placement), fix='flow.placement("cpu", [0, 1])')
        self.stage_id, self.placement = stage_id, placement

    def debug(self, v_level: int = 0, **options) -> None:
        """Set the verbosity of this module and its descendants; see Graph.debug."""
        for block in self.walk():
            block.debug_level = v_level

    def __repr__(self) -> str:
        return f"({self.handle_repr})"

    @property
    def handle_repr(self) -> str:
        """Return the form that print(graph) shows, such as `GraphModule:model(stage_id=0)`."""
        said = ([f"stage_id={self.stage_id}, "] if self.stage_id is not None else [])
        said += ["activation_checkpointing=True, "] if self.activation_checkpointing else []
        return f"GraphModule:{self.path}({''.join(said)})"


@dataclass(frozen=True)
class GraphTensor:
    """Graph-specific data of a parameter or buffer.

    Args:
        name: its path.
        type: "PARAMETER" or "BUFFER".
    """

    name: str
    type: str


def unwrap(value):
    """Return the module or tensor of a proxy, or any other value unchanged."""
    if isinstance(value, ProxyModule):
        return value._block.origin
    return value._tensor if isinstance(value, ProxyTensor) else value


class ProxyModule:
    """Proxy of a module, the value of `graph.model`, with `.to(GraphModule)` in addition.

    Assignments and deletions of attributes and items apply to the module.

    Args:
        block: block of the module.
    """

    def __init__(self, block: GraphModule):
        object.__setattr__(self, "_block", block)

    def to(self, *args, **kwargs):
        """Return the module for nn.Module, its block for GraphModule; otherwise call `to` of the module."""
        if len(args) == 1 and isinstance(args[0], type):
            if issubclass(args[0], GraphModule):
                return self._block
            if issubclass(args[0], Module):
                return self._block.origin
        self._block.origin.to(*args, **kwargs)
        return self

    def __call__(self, *args, **kwargs):
        return self._block.origin(*args, **kwargs)

    def __reduce_ex__(self, protocol: SupportsIndex):
        """Copy and pickle the module."""
        return unwrap, (self._block.origin,)

    def __getattr__(self, name: str):
        block = self._block
        value = getattr(block.origin, name)
        if isinstance(value, Module) and block.origin._modules.get(name) is value:
            return ProxyModule(self._children()[name])
        if isinstance(value, Tensor) and thread_state.tracer is None:
            for kind, table in (("PARAMETER", block.origin._parameters), ("BUFFER", block.origin._buffers)):
                if name in table:
                    return ProxyTensor(value, GraphTensor(f"{block.path}.{name}", kind))
        return value

    def _children(self) -> dict[str, GraphModule]:
        """Return the blocks of the module's current children."""
        refresh(self._block)
        return self._block.children

    def __setattr__(self, name: str, value) -> None:
        setattr(self._block.origin, name, unwrap(value))

    def __delattr__(self, name: str) -> None:
        delattr(self._block.origin, name)

    def __getitem__(self, key):
        children = self._children()
        if not children:                           # ParameterList, ParameterDict
            return self._block.origin[key]
        keys = list(children)
        if isinstance(key, slice):
            return [ProxyModule(children[k]) for k in keys[key]]
        return ProxyModule(children[key if isinstance(key, str) else keys[key]])

    def __setitem__(self, key, value) -> None:
        self._block.origin[key] = unwrap(value)

    def __delitem__(self, key) -> None:
        del self._block.origin[key]

    def __len__(self) -> int:
        return len(self._block.origin)

    def __contains__(self, value) -> bool:
        return unwrap(value) in self._block.origin

    def __iter__(self):
        if isinstance(self._block.origin, (ModuleDict, ParameterDict, ParameterList)):
            return iter(self._block.origin)
        return (ProxyModule(b) for b in self._children().values())

    def state_dict(self, *args, **kwargs) -> ProxyState:
        return ProxyState(self._block.origin.state_dict(*args, **kwargs))

    def __repr__(self) -> str:
        return f"(PROXY:{self._block.path}:{self._block.origin._shallow_repr()})"


class ProxyTensor:
    """Value of `graph.model.weight` outside build.

    `.to(flow.Tensor)` returns the tensor, and `.to(GraphTensor)` its name and kind. Everything else,
    including operators and assignments, applies to the tensor.
    """

    def __init__(self, tensor: Tensor, handle: GraphTensor):
        object.__setattr__(self, "_tensor", tensor)
        object.__setattr__(self, "_handle", handle)

    def to(self, *args, **kwargs):
        if len(args) == 1 and isinstance(args[0], type):
            return self._handle if issubclass(args[0], GraphTensor) else self._tensor
        return self._tensor.to(*args, **kwargs)

    def __reduce_ex__(self, protocol: SupportsIndex):
        """Copy and pickle the tensor."""
        return unwrap, (self._tensor,)

    def __getattr__(self, name: str):
        return getattr(self._tensor, name)

    def __setattr__(self, name: str, value) -> None:
        setattr(self._tensor, name, unwrap(value))

    def __delattr__(self, name: str) -> None:
        delattr(self._tensor, name)

    def __repr__(self) -> str:
        return f"({self._handle.type}:{self._handle.name}:{self._tensor!r})"


def _forward(name: str):
    """Return the special method `name` that calls the tensor's; Python looks it up on the class."""
    def method(self, *args, **kwargs):
        return getattr(self._tensor, name)(*map(unwrap, args), **kwargs)
    method.__name__ = name
    return method


_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
_SPECIAL = [prefix + name for name in _OPERATORS for prefix in ("", "r", "i")]
_SPECIAL += """neg pos abs invert eq ne lt le gt ge hash bool int float complex index len iter contains
    getitem setitem array""".split()
for _name in _SPECIAL:
    if hasattr(Tensor, f"__{_name}__"):
        setattr(ProxyTensor, f"__{_name}__", _forward(f"__{_name}__"))
