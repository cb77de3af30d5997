"""From gradients to updates, of an nn.Graph: learning rates, and where states are kept. The rest: core/graph/updates.py."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu.core.graph import updates
from flowedu.core.graph.ir import GraphValue
from flowedu.core.graph.updates import Group, Member
from flowedu.core.ops.arrays import copied
from flowedu.core.ops.dispatch import carried
from flowedu.core.ops.tensor import Tensor
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError

STEP = "System-Train-TrainStep"


class Rate:
    """A learning rate the host writes before every run: of one group of one optimizer.

    Attributes: scheduler, None or what add_optimizer was told; steps, the array that holds the number of steps made; value,
    what stands for the rate in the graph.
    """

    def __init__(self, optimizer, group: int, scheduler, name: str):
        self.optimizer, self.group, self.scheduler, self.name = optimizer, group, scheduler, name
        wide = any(p.dtype is dt.float64 for p in optimizer.param_groups[group]["params"])
        self.tensor = copied([0.0], dt.float64 if wide else dt.float32)
        self.array, self.now = self.tensor.numpy(), 0.0
        self.options = optimizer.param_groups[group]

    def write(self) -> None:
        """Before a run: the rate of its step."""
        options = self.options
        lr = options["lr"] if self.scheduler is None else \
            self.scheduler.lr_at(options.get("initial_lr", options["lr"]), int(self.steps[0]), self.group)
        if lr != self.now:
            self.array[0] = self.now = lr


def check_disjoint(entries: Sequence[tuple], paths: dict[int, str]) -> None:
    """Every parameter belongs to one optimizer. Raises ArgumentError (a ValueError)."""
    owner: dict[int, int] = {}
    for number, (optimizer, _) in enumerate(entries):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if owner.setdefault(id(p), number) != number:
                    raise ArgumentError(f"<{paths.get(id(p), tuple(p.shape))}> is already bound to another optimizer",
                                        expected="every parameter in one optimizer", got=f"optimizers {owner[id(p)]} and "
                                        f"{number}", fix="make the optimizers over disjoint parameters")


def check_members(entries: Sequence[tuple], paths: dict[int, str]) -> None:
    """Every parameter belongs to the graph. Raises ArgumentError (a ValueError)."""
    for number, (optimizer, _) in enumerate(entries):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if id(p) not in paths:
                    raise ArgumentError(f"Parameter <{tuple(p.shape)}> is not in the corresponding nn.Graph/nn.Module",
                                        expected="parameters of the modules assigned to the graph",
                                        got=f"a parameter of optimizer {number} that is in none of them",
                                        fix="assign the module to the graph, and make the optimizer after "
                                            "model.to(...)")


def append_updates(tracer, entries: Sequence[tuple], grads: dict[int, GraphValue], states: dict[str, Tensor],
                   scale: float = 1.0, together: bool = True) -> list[Rate]:
    """Append one update op per optimizer and group; returns their learning rates.

    Args:
        entries: (optimizer, scheduler or None) pairs.
        grads: {id of a parameter: its gradient}.
        states: {name: tensor} of what the updates remember; taken from here if there (a loaded state), else made and
            entered.
        scale: gradients are multiplied by this first.
        together: all parameters of a group by one op; else each by one of its own.
    """
    rates, groups = [], []
    homes = {tracer.paths[i]: lay for i, lay in tracer.placing.homes.items()}
    step = _state(tracer, states, STEP, updates.STEP, 0)
    for optimizer, scheduler in entries:
        for number, group in enumerate(optimizer.param_groups):
            trained = [p for p in group["params"] if id(p) in grads]
            if not trained:
                continue
            rate = Rate(optimizer, number, scheduler, f"System-Train-LearningRate-Scheduler_{len(rates)}")
            rate.steps, rate.value = states[STEP].numpy(), tracer.graph.host(rate.name, rate.tensor.spec)
            rates.append(rate)
            members = [Member(tracer.paths[id(p)], tracer.value_of(p), grads[id(p)], rate.value) for p in trained]
            rule = optimizer.update_of(group)
            groups.append(Group(lambda _, rule=rule: rule, step, members, optimizer.clipping_of(group)))
    updates.append_updates(groups, lambda name, spec, initial, of: _state(tracer, states, name, spec, initial,
                                                                          homes.get(of)), scale, together)
    return rates


def _state(tracer, states: dict, name: str, spec: Spec, initial: float, lay=None) -> GraphValue:
    """What stands for one of `states`. lay: how it lies, for global parameters."""
    if name in tracer.graph.variables:
        return tracer.graph.variables[name]
    found = states.get(name)
    if found is None or found.spec != spec:
        if found is not None:
            raise ArgumentError(f"nn.Graph.load_state_dict: {name} does not fit", expected=str(spec), got=str(found.spec),
                                fix="load the state of a graph with the same model and optimizer")
        found = copied(np.full(spec.shape, initial, spec.dtype.numpy))
    place = 0 if name == STEP else tracer.placing.place
    if found.lay is None and found.place_ != place:
        found = carried(found, place)
    if lay is not None and found.lay is not lay:
        found = tracer.placing.laid(found, lay)
    states[name] = tracer.variables[name] = found
    value = tracer.graph.variable(name, spec)
    if lay is not None:
        tracer.placing.enter(value, found)
    return value
