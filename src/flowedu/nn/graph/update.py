"""From gradients to updates: the part of a training graph that the optimizers added with add_optimizer stand for."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu.blob import dtype as dt
from flowedu.blob.spec import Spec
from flowedu.errors import ArgumentError
from flowedu.graph.ir import GraphValue
from flowedu.ops.define import REGISTRY
from flowedu.tensor import Tensor, tensor

STEP = "System-Train-TrainStep"


class Rate:
    """A learning rate the host writes before every run: of one group of one optimizer.

    Attributes: scheduler, None or what add_optimizer was told; steps, the array that holds the number of steps made; value,
    what stands for the rate in the graph.
    """

    def __init__(self, optimizer, group: int, scheduler, name: str):
        self.optimizer, self.group, self.scheduler, self.name = optimizer, group, scheduler, name
        wide = any(p.dtype is dt.float64 for p in optimizer.param_groups[group]["params"])
        self.tensor = tensor([0.0], dtype=dt.float64 if wide else dt.float32)
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
    graph, rates = tracer.graph, []
    step = _state(tracer, states, STEP, Spec((1,), dt.int64), 0)
    for optimizer, scheduler in entries:
        for number, group in enumerate(optimizer.param_groups):
            members = [p for p in group["params"] if id(p) in grads]
            if not members:
                continue
            rate = Rate(optimizer, number, scheduler, f"System-Train-LearningRate-Scheduler_{len(rates)}")
            rate.steps = states[STEP].numpy()
            rates.append(rate)
            pairs = [(p, tracer.paths[id(p)], grads[id(p)]) for p in members]
            pairs = [(p, n, g * scale) for p, n, g in pairs] if scale != 1.0 else pairs
            if group.get("clip_grad_max_norm") is not None and group.get("clip_grad_norm_type") is not None:
                pairs = clipped(pairs, group["clip_grad_max_norm"], group["clip_grad_norm_type"])
            rule, rate.value = optimizer.update_of(group), graph.host(rate.name, rate.tensor.spec)
            for some in [pairs] if together else [[pair] for pair in pairs]:
                operands = [rate.value, step]
                for p, name, g in some:
                    home = tracer.placing.homes.get(id(p))
                    operands += [tracer.value_of(p), g]
                    operands += [_state(tracer, states, f"{name}-{s.suffix}", p.spec, s.initial, home)
                                 for s in rule.states]
                before = len(graph.nodes)
                rule.op(*operands, **rule.attrs)
                for node in graph.nodes[before:]:
                    tracer.owner[node] = None
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
        found = tensor(np.full(spec.shape, initial, spec.dtype.numpy))
    if lay is not None and found.lay is not lay:
        found = tracer.placing.laid(found, lay)
    states[name] = tracer.variables[name] = found
    value = tracer.graph.variable(name, spec)
    if lay is not None:
        tracer.placing.enter(value, found)
    return value


def clipped(pairs: list, max_norm: float, norm_type: float) -> list:
    """The gradients of a group, made smaller together so that their norm is max_norm at most (spec: torch's formula)."""
    e, total = REGISTRY, None
    for _, _, g in pairs:
        a = e["abs"](g)
        if norm_type == float("inf"):
            part = e["max"](a, axis=tuple(range(g.ndim)), keepdims=False)
            total = part if total is None else e["maximum"](total, part)
        else:
            part = e["sum"](g * g if norm_type == 2 else a ** float(norm_type), axis=tuple(range(g.ndim)), keepdims=False)
            total = part if total is None else total + part
    if norm_type != float("inf"):
        total = e["sqrt"](total) if norm_type == 2 else total ** (1.0 / norm_type)
    factor = e["minimum"](float(max_norm) / (total + 1e-6), 1.0)
    return [(p, n, g * factor) for p, n, g in pairs]
