"""Scaling, clipping, and parameter updates at the end of a training graph.

One op updates all parameters of a group with the same learning rate. Job functions and nn.Graph
provide the learning rates, the step counter, and the storage of the optimizer states.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from flowedu.core.layers.group import UpdateRule
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec

STEP = Spec((1,), dt.int64)                       # of the step counter


class Member(NamedTuple):
    """A parameter to update. penalty: None, or a regularizer, which adds its gradient."""

    name: str
    value: Any
    gradient: Any
    rate: Any
    penalty: Any = None


class Group(NamedTuple):
    """Parameters that one optimizer updates and clips together.

    rule(names of parameters) returns the update rule. step: the value of the step counter.
    clipping: None, or an object whose factor(gradients) returns the factor for all gradients.
    """

    rule: Callable[[Sequence[str]], UpdateRule]
    step: Any
    members: Sequence[Member]
    clipping: Any = None


def append_updates(groups: Iterable[Group], remember: Callable[[str, Spec, float, str], Any],
                   scale: float = 1.0, together: bool = True) -> None:
    """Call the update ops of all groups in the current interpreter.

    Args:
        remember: (name, Spec, initial value, name of the parameter) -> the value of a state.
        scale: factor for the gradients that undoes loss scaling.
        together: True for one op per group and learning rate, False for one op per parameter.
    """
    for group in groups:
        members, left = group.members, scale
        if group.clipping is not None:
            members, left = _clip(group, scale), 1.0
        for some in _group_by_rate(members) if together else [[m] for m in members]:
            rule = group.rule([m.name for m in some])
            operands = [some[0].rate, group.step]
            for m in some:
                operands += [m.value, m.gradient]
                for s in rule.states:
                    spec = s.spec(m.value.spec)
                    operands.append(m.value if spec is None
                                    else remember(f"{m.name}-{s.suffix}", spec, s.initial, m.name))
            penalties = {} if not any(m.penalty for m in some) else {
                n: tuple(getattr(m.penalty, n, 0.0) for m in some) for n in ("l1", "l2")}
            rule.op(*operands,
                    **{**rule.attrs, **penalties, "scale": left * rule.attrs.get("scale", 1.0)})


def _group_by_rate(members: Sequence[Member]) -> list[list[Member]]:
    groups: dict[int, list[Member]] = {}
    for m in members:
        groups.setdefault(id(m.rate), []).append(m)
    return list(groups.values())


def _clip(group: Group, scale: float) -> list[Member]:
    """Return the members with clipped gradients, which include the gradients of the penalties."""
    gradients = []
    for m in group.members:
        g = m.gradient if scale == 1.0 else m.gradient * scale
        extra = None if m.penalty is None else m.penalty.gradient(m.value, REGISTRY["sign"])
        gradients.append(g if extra is None else g + extra)
    factor = group.clipping.factor(gradients)
    members = []
    for m, g in zip(group.members, gradients):
        same = factor if factor.dtype is g.dtype else REGISTRY["cast"](factor, dtype=g.dtype)
        members.append(m._replace(gradient=g * same, penalty=None))
    return members
