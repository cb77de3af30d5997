"""Learning rates and optimizer states of nn.Graph. core/graph/updates.py appends the ops."""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.eager.arrays import copied
from flowedu.core.eager.dispatch import copy_to_device
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph import updates
from flowedu.core.graph.ir import GraphValue
from flowedu.core.graph.updates import Group, Member
from flowedu.core.trace.tracer import Tracer
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import graphs as errors

STEP = "System-Train-TrainStep"


class Rate:
    """The learning rate of one parameter group, which the host writes before every run."""

    def __init__(self, options: dict):
        wide = any(p.dtype is dt.float64 for p in options["params"])
        self.tensor = copied([0.0], dt.float64 if wide else dt.float32)
        self.array, self.now, self.options = self.tensor.numpy(), 0.0, options

    def write(self) -> None:
        """Write the current learning rate of the group."""
        lr = self.options["lr"]
        if lr != self.now:
            self.array[0] = self.now = lr


def append_updates(tracer: Tracer, entries: Sequence[tuple], grads: dict[int, GraphValue],
                   states: dict[str, Tensor], scale: float = 1.0,
                   together: bool = True) -> tuple[list[Rate], dict[GraphValue, Tensor]]:
    """Append an update op per optimizer and group. Returns the rates and {host value: tensor}.

    Args:
        entries: (optimizer, scheduler or None) pairs.
        grads: {id of a parameter: its gradient}.
        states: {name: tensor} of the optimizer states, to which this function adds.
        scale: factor for the gradients.
        together: True for one op per group, False for one op per parameter.
    """
    rates, groups = list[Rate](), list[Group]()
    hosts, owned = dict[GraphValue, Tensor](), {}
    homes = {tracer.paths[i]: global_layout for i, global_layout in tracer.placing.homes.items()}
    for optimizer, _ in entries:
        if optimizer is entries[0][0]:                # the executor increments only this counter
            states[STEP] = optimizer.count_
            step = _add_state(tracer, states, STEP, updates.STEP)
        else:
            step = tracer.graph.host(f"{STEP}_{len(hosts)}", updates.STEP)
            hosts[step] = optimizer.count_
        for group in optimizer.param_groups:
            trained = [p for p in group["params"] if id(p) in grads]
            if not trained:
                continue
            rate, rule = Rate(group), optimizer.update_of(group)
            value = tracer.graph.host(f"System-Train-LearningRate-Scheduler_{len(rates)}",
                                      rate.tensor.spec)
            hosts[value] = rate.tensor
            rates.append(rate)
            members = [Member(tracer.paths[id(p)], tracer.value_of(p), grads[id(p)], value)
                       for p in trained]
            for p in trained:
                state = optimizer.state_of(p, group)
                owned.update({f"{tracer.paths[id(p)]}-{s.suffix}": (state, s.key)
                              for s in rule.states if s.key in state})
            groups.append(Group(lambda _, rule=rule: rule, step, members,  # type: ignore[misc]
                                optimizer.clipping_of(group)))
    states.update({name: state[key] for name, (state, key) in owned.items()})
    with tracer.raw():
        def add(name: str, spec: Spec, _: float, of: str) -> GraphValue:
            return _add_state(tracer, states, name, spec, homes.get(of))
        updates.append_updates(groups, add, scale, together)
    for name, (state, key) in owned.items():
        state[key] = states[name]                     # its device or layout may have changed
    return rates, hosts


def _add_state(tracer: Tracer, states: dict[str, Tensor], name: str, spec: Spec,
               global_layout: object = None) -> GraphValue:
    """Return the graph variable of a state. global_layout: that of a global parameter."""
    if name in tracer.graph.variables:
        return tracer.graph.variables[name]
    t = states[name]
    if t.spec != spec:
        raise errors.state_misfit(name, spec, t.spec)
    place = 0 if name == STEP else tracer.placing.place
    if t.global_layout is None and t._device != place:
        t = copy_to_device(t, place)
    if global_layout is not None and t.global_layout is not global_layout:
        t = tracer.placing.value_in_layout(t, global_layout)
    states[name] = tracer.variables[name] = t
    value = tracer.graph.variable(name, spec)
    if global_layout is not None:
        tracer.placing.enter(value, t)
    return value
