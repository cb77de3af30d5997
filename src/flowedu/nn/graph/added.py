"""Checks of the optimizers of a graph: each parameter belongs to one optimizer and to a module of the graph.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.group import BaseOptimizer
from flowedu.errors import ArgumentError, CheckError, GraphError


def check_optimizer(graph, optim, lr_sch) -> None:
    """Raise CheckError, GraphError, or ArgumentError (a ValueError) for invalid arguments of add_optimizer.
    """
    if optim is None:
        raise CheckError("add_optimizer: optimizer cannot be None", expected="a flow.optim.Optimizer",
                         got="None")
    if not isinstance(optim, BaseOptimizer):
        raise CheckError("add_optimizer: optimizer must be an instance of Optimizer",
                         got=type(optim).__name__,
                         expected="one made by flow.optim", fix="flow.optim.SGD(model.parameters(), lr=0.1)")
    if lr_sch is not None:
        if not hasattr(lr_sch, "lr_at"):
            raise CheckError("add_optimizer: lr_sch cannot work in a graph", got=type(lr_sch).__name__,
                             expected="a scheduler whose rate depends on the number of the step",
                             fix="a scheduler of flow.optim.lr_scheduler; ReduceLROnPlateau only works "
                             "eagerly")
        if lr_sch.optimizer is not optim:
            raise CheckError("add_optimizer: lr_sch belongs to another optimizer",
                             expected="lr_sch.optimizer is optim",
                             got=f"that of a {type(lr_sch.optimizer).__name__}")
    if graph._compiled is not None:
        raise GraphError(f"add_optimizer: nn.Graph {graph.name} has already been compiled",
                         expected="add_optimizer in __init__", got="a graph that was called",
                         fix="make another graph")
    check_disjoint([*graph._optimizers, (optim, lr_sch)], graph._paths())


def _parameters(entries: Sequence[tuple]) -> Iterator[tuple[int, Tensor]]:
    """Yield (number of the optimizer, parameter) for all optimizers, in order."""
    for number, (optimizer, _) in enumerate(entries):
        for group in optimizer.param_groups:
            yield from ((number, p) for p in group["params"])


def check_disjoint(entries: Sequence[tuple], paths: dict[int, str]) -> None:
    """Raise ArgumentError (a ValueError) unless every parameter belongs to one optimizer."""
    owner: dict[int, int] = {}
    for number, p in _parameters(entries):
        if owner.setdefault(id(p), number) != number:
            raise ArgumentError(f"<{paths.get(id(p), tuple(p.shape))}> is already bound to another optimizer",
                                expected="every parameter in one optimizer",
                                got=f"optimizers {owner[id(p)]} and {number}",
                                fix="make the optimizers over disjoint parameters")


def check_members(entries: Sequence[tuple], paths: dict[int, str]) -> None:
    """Raise ArgumentError (a ValueError) unless every parameter belongs to the graph."""
    for number, p in _parameters(entries):
        if id(p) not in paths:
            raise ArgumentError(
                f"Parameter <{tuple(p.shape)}> is not in the corresponding nn.Graph/nn.Module",
                expected="parameters of the modules assigned to the graph",
                got=f"a parameter of optimizer {number} that is in none of them",
                fix="assign the module to the graph, and make the optimizer after model.to(...)")
