"""The state of a graph: that of its modules, what its optimizers remember, and the number of steps."""
from __future__ import annotations

from collections import OrderedDict

from flowedu.core.ops.arrays import copy_of, tensor_alias
from flowedu.core.ops.dispatch import copy_into
from flowedu.core.ops.tensor import Tensor
from flowedu.core.trace.tracer import FREE
from flowedu.errors import ArgumentError, CheckError


def state_dict(graph, destination: dict | None = None) -> dict:
    """{name of a module attribute: its state_dict}; once compiled also `<parameter>-momentum` and the like,
    `System-Train-TrainStep`, and `FreeEagerTensor-n`; before that, what load_state_dict left for the compiler."""
    found = OrderedDict() if destination is None else destination
    for name, block in graph._blocks.items():
        found[name] = block.origin.state_dict()
    extra = dict(graph._states)
    if graph._compiled is not None:
        own = set(graph._paths().values())
        extra.update({n: t for n, t in graph._compiled.tracer.variables.items() if n not in own})
    found.update(sorted(extra.items()))
    return found


def load_state_dict(graph, state: dict, strict: bool = True) -> None:
    """Modules take their part; the rest waits for the first call, which gives it to the optimizers' states.

    Raises CheckError when the graph has been called, or when a tensor belongs to nothing.
    """
    if graph._compiled is not None:
        raise CheckError("nn.Graph's state dict can only be loaded before the first call of a graph",
                         expected=f"a new graph of class {graph.class_name}", got=f"{graph.name}, which was called",
                         fix="make a new graph over the same module, and load into that")
    for name, value in state.items():
        if name in graph._blocks:
            graph._blocks[name].origin.load_state_dict(value, strict=strict)
        elif isinstance(value, Tensor):
            graph._states[name] = copy_of(value.detach())
        elif strict and value:
            raise CheckError(f"load_state_dict: graph {graph.name} has no module {name!r}", got=name,
                             expected=", ".join(graph._blocks) or "no modules", fix="load the state of a graph whose "
                             "modules have the same attribute names, or pass strict=False")


def load_free_tensors(states: dict[str, Tensor], variables: dict[str, Tensor]) -> None:
    """The loaded values of tensors that build took from outside go into those tensors, at the first call."""
    for name in [n for n in states if n.startswith(FREE) and n in variables]:
        value, own = states.pop(name), variables[name]
        if value.spec != own.spec:
            raise ArgumentError(f"nn.Graph.load_state_dict: {name} does not fit", expected=str(own.spec),
                                got=str(value.spec), fix="load the state of a graph whose build uses the same tensors, in "
                                "the same order")
        copy_into(tensor_alias(own), value)
