"""From gradients to updates, of an nn.Graph: learning rates, and where states are kept. The rest: core/graph/updates.py."""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.eager.arrays import copied
from flowedu.core.eager.dispatch import carried
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph import updates
from flowedu.core.graph.ir import GraphValue
from flowedu.core.graph.updates import Group, Member
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError

STEP = "System-Train-TrainStep"


class Rate:
    """A learning rate the host writes before every run: of one group of one optimizer."""

    def __init__(self, options: dict):
        wide = any(p.dtype is dt.float64 for p in options["params"])
        self.tensor = copied([0.0], dt.float64 if wide else dt.float32)
        self.array, self.now, self.options = self.tensor.numpy(), 0.0, options

    def write(self) -> None:
        """Before a run: the rate that the group has now."""
        lr = self.options["lr"]
        if lr != self.now:
            self.array[0] = self.now = lr


def append_updates(tracer, entries: Sequence[tuple], grads: dict[int, GraphValue], states: dict[str, Tensor],
                   scale: float = 1.0, together: bool = True) -> tuple[list[Rate], dict[GraphValue, Tensor]]:
    """Append one update op per optimizer and group; returns the learning rates, and what the host writes.

    Args:
        entries: (optimizer, scheduler or None) pairs.
        grads: {id of a parameter: its gradient}.
        states: {name: tensor} learns what the updates remember: the optimizers' own tensors.
        scale: gradients are multiplied by this first.
        together: all parameters of a group by one op; else each by one of its own.
    """
    rates, hosts, groups, owned = [], {}, [], {}
    homes = {tracer.paths[i]: global_layout for i, global_layout in tracer.placing.homes.items()}
    for optimizer, _ in entries:
        if optimizer is entries[0][0]:                # the executor counts for this one alone
            states[STEP] = optimizer.count_
            step = _state(tracer, states, STEP, updates.STEP)
        else:
            step = tracer.graph.host(f"{STEP}_{len(hosts)}", updates.STEP)
            hosts[step] = optimizer.count_
        for group in optimizer.param_groups:
            trained = [p for p in group["params"] if id(p) in grads]
            if not trained:
                continue
            rate, rule = Rate(group), optimizer.update_of(group)
            value = tracer.graph.host(f"System-Train-LearningRate-Scheduler_{len(rates)}", rate.tensor.spec)
            hosts[value] = rate.tensor
            rates.append(rate)
            members = [Member(tracer.paths[id(p)], tracer.value_of(p), grads[id(p)], value) for p in trained]
            for p in trained:
                own = optimizer.state_of(p, group)
                owned.update({f"{tracer.paths[id(p)]}-{s.suffix}": (own, s.key) for s in rule.states if s.key in own})
            groups.append(Group(lambda _, rule=rule: rule, step, members, optimizer.clipping_of(group)))
    states.update({name: own[key] for name, (own, key) in owned.items()})
    with tracer.raw():
        updates.append_updates(groups, lambda name, spec, _, of: _state(tracer, states, name, spec, homes.get(of)), scale,
                               together)
    for name, (own, key) in owned.items():
        own[key] = states[name]                       # as it lies now
    return rates, hosts


def _state(tracer, states: dict, name: str, spec: Spec, global_layout=None) -> GraphValue:
    """What stands for one of `states`. global_layout: that of a global parameter."""
    if name in tracer.graph.variables:
        return tracer.graph.variables[name]
    found = states[name]
    if found.spec != spec:
        raise ArgumentError(f"{name} does not fit its parameter", expected=str(spec), got=str(found.spec),
                            fix="make the optimizer after model.to(...)")
    place = 0 if name == STEP else tracer.placing.place
    if found.global_layout is None and found._device != place:
        found = carried(found, place)
    if global_layout is not None and found.global_layout is not global_layout:
        found = tracer.placing.laid(found, global_layout)
    states[name] = tracer.variables[name] = found
    value = tracer.graph.variable(name, spec)
    if global_layout is not None:
        tracer.placing.enter(value, found)
    return value
