"""State of a graph: the state of its modules, the optimizer states, and the number of steps.

Optimizers and schedulers own their state. A graph writes into their tensors, and the functions here read and
load that state through them.
"""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from flowedu.core.eager.arrays import copied, copy_of, tensor_alias
from flowedu.core.eager.dispatch import copy_into
from flowedu.core.eager.tensor import Tensor
from flowedu.core.trace.tracer import FREE
from flowedu.core.trace.update import STEP
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError
from flowedu.tensor.global_tensors.functions import logical

# Of a schedule whose count differs from its optimizer's, and its number.
SCHEDULE = "System-Train-ScheduleStep"

SCALE = "System-Train-GradScaler-Scale"
# {name: attribute of the scaler}
SCALER = {SCALE: "_factor", "System-Train-GradScaler-GoodSteps": "_good"}
MADE = "System-Train-GradScaler-Made"            # True if the last run made its step; not saved


def state_dict(graph, destination: dict | None = None) -> dict:
    """Return {name of a module attribute: its state_dict} and the states of the optimizers.

    The states of the optimizers have names such as `<parameter>-momentum`. `System-Train-TrainStep` and free
    tensors, `FreeEagerTensor-n`, are included if they exist already.
    """
    found = OrderedDict() if destination is None else destination
    for name, block in graph._blocks.items():
        found[name] = block.origin.state_dict()
    extra = dict(graph._states)
    if graph._compiled is not None:
        own = {*graph._paths().values(), MADE}
        extra.update({n: t for n, t in graph._compiled.tracer.variables.items() if n not in own})
    extra.update(remembered(graph))
    found.update(sorted(extra.items()))
    return found


def remembered(graph) -> dict[str, Tensor]:
    """Return the states of the optimizers and schedulers, under their names in a graph."""
    found = {name: o.state[p][s.key] for name, o, p, _, s in _places(graph) if s.key in o.state.get(p, ())}
    for i, (optimizer, scheduler) in enumerate(graph._optimizers):
        n = optimizer.count_.item()
        if i == 0 and n:
            found[STEP] = optimizer.count_
        elif i and n != graph._optimizers[0][0].count_.item():
            found[f"{STEP}_{i}"] = optimizer.count_
        if scheduler is not None and scheduler.last_step != n:
            found[f"{SCHEDULE}_{i}"] = copied([scheduler.last_step], dt.int64)
    if graph._scaler is not None and graph._scaler.is_enabled():
        found.update({name: getattr(graph._scaler, key) for name, key in SCALER.items()})
    return found


def _places(graph) -> Iterator[tuple]:
    """Yield (name, optimizer, parameter, its group, State) for all possible optimizer states."""
    paths = graph._paths()
    for optimizer, _ in graph._optimizers:
        for group in optimizer.param_groups:
            for s in optimizer.update_of(group).states:
                yield from ((f"{paths[id(p)]}-{s.suffix}", optimizer, p, group, s) for p in group["params"]
                            if id(p) in paths)


def load_state_dict(graph, state: dict, strict: bool = True) -> None:
    """Load the states of modules and optimizers; free tensors are loaded at the first call.

    Raises:
        CheckError: the graph was called already, or a name in `state` is not a module of the graph.
    """
    if graph._compiled is not None:
        raise CheckError("nn.Graph's state dict can only be loaded before the first call of a graph",
                         expected=f"a new graph of class {graph.class_name}",
                         got=f"{graph.name}, which was called",
                         fix="make a new graph over the same module, and load into that")
    for name, value in state.items():
        if name in graph._blocks:
            graph._blocks[name].origin.load_state_dict(value, strict=strict)
        elif isinstance(value, Tensor):
            graph._states[name] = copy_of(value.detach())
        elif strict and value:
            raise CheckError(f"load_state_dict: graph {graph.name} has no module {name!r}", got=name,
                             expected=", ".join(graph._blocks) or "no modules",
                             fix="load the state of a graph whose modules have the same attribute names, or "
                             "pass strict=False")
    give_to_optimizers(graph)


def give_to_optimizers(graph) -> None:
    """Pass the states of the optimizers, schedulers, and scaler to them."""
    states = graph._states
    for name, optimizer, p, group, s in _places(graph):
        if name in states:
            _check(name, states[name].spec, s.spec(p.spec), "with the same model and optimizer")
            optimizer.take_(p, group, s.key, states.pop(name))
    for name, key in SCALER.items() if graph._scaler is not None else ():
        if name in states:
            own = getattr(graph._scaler, key)
            _check(name, states[name].spec, own.spec, "with a GradScaler")
            copy_into(own, _whole(states.pop(name)))
    if STEP not in states:
        return
    count = _whole(states.pop(STEP))
    for i, (optimizer, scheduler) in enumerate(graph._optimizers):
        own = _whole(states.pop(f"{STEP}_{i}", count))
        _check(STEP, own.spec, optimizer.count_.spec, "with the same optimizers")
        copy_into(optimizer.count_, own)
        if scheduler is not None:
            scheduler.go_to_(_whole(states.pop(f"{SCHEDULE}_{i}", own)).item())


def _whole(t: Tensor) -> Tensor:
    """Return t as a local tensor; a value independent of devices may have been spread with its state."""
    return t if t.global_layout is None else logical(t)


def _check(name: str, got, expected, of: str) -> None:
    if got != expected:
        raise ArgumentError(f"nn.Graph.load_state_dict: {name} does not fit", expected=str(expected),
                            got=str(got), fix=f"load the state of a graph {of}")


def load_free_tensors(states: dict[str, Tensor], variables: dict[str, Tensor]) -> None:
    """Copy loaded values into the free tensors of build, at the first call."""
    for name in [n for n in states if n.startswith(FREE) and n in variables]:
        value, own = states.pop(name), variables[name]
        _check(name, value.spec, own.spec, "whose build uses the same tensors, in the same order")
        copy_into(tensor_alias(own), value)
