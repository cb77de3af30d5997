"""From gradients to updates: the last part of a training graph, of job functions and of nn.Graph alike.

Gradients are scaled and clipped; then one op for each group of parameters and each learning rate updates them all. How a
rate is found, how the steps are counted and where states are kept, the front ends say.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from flowedu.core.layers.group import UpdateRule
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec

STEP = Spec((1,), dt.int64)                       # of what counts the steps made


class Member(NamedTuple):
    """A parameter: its name and value, the gradient of the loss, the value of its learning rate, and None or a regularizer,
    whose gradient comes to that of the loss."""

    name: str
    value: Any
    gradient: Any
    rate: Any
    penalty: Any = None


class Group(NamedTuple):
    """Parameters that one optimizer updates, and clips together.

    rule(their names): the update. step: the value that counts the steps. clipping: None, or factor(gradients) says what to
    multiply them by.
    """

    rule: Callable[[Sequence[str]], UpdateRule]
    step: Any
    members: Sequence[Member]
    clipping: Any = None


def append_updates(groups: Iterable[Group], remember: Callable[[str, Spec, float, str], Any], scale: float = 1.0,
                   together: bool = True) -> None:
    """Call the update ops of all groups, in the interpreter that is in charge.

    Args:
        remember: (name, Spec, first value, name of the parameter) -> the value of a state.
        scale: what gradients are multiplied by first, so that they are of the loss itself.
        together: the parameters of a group by one op; else each by one of its own.
    """
    for group in groups:
        members, left = (group.members, scale) if group.clipping is None else (_clipped(group, scale), 1.0)
        for some in _by_rate(members) if together else [[m] for m in members]:
            rule = group.rule([m.name for m in some])
            operands = [some[0].rate, group.step]
            for m in some:
                operands += [m.value, m.gradient]
                for s in rule.states:
                    spec = s.spec(m.value.spec)
                    operands.append(m.value if spec is None else remember(f"{m.name}-{s.suffix}", spec, s.initial, m.name))
            penalties = {} if not any(m.penalty for m in some) else {
                n: tuple(getattr(m.penalty, n, 0.0) for m in some) for n in ("l1", "l2")}
            rule.op(*operands, **{**rule.attrs, **penalties, "scale": left * rule.attrs.get("scale", 1.0)})


def _by_rate(members: Sequence[Member]) -> list[list[Member]]:
    found: dict[int, list[Member]] = {}
    for m in members:
        found.setdefault(id(m.rate), []).append(m)
    return list(found.values())


def _clipped(group: Group, scale: float) -> list[Member]:
    """The members with the gradients of loss and penalty together, made smaller."""
    gradients = []
    for m in group.members:
        g = m.gradient if scale == 1.0 else m.gradient * scale
        extra = None if m.penalty is None else m.penalty.gradient(m.value, REGISTRY["sign"])
        gradients.append(g if extra is None else g + extra)
    factor = group.clipping.factor(gradients)
    return [m._replace(gradient=g * (factor if factor.dtype is g.dtype else REGISTRY["cast"](factor, dtype=g.dtype)),
                       penalty=None) for m, g in zip(group.members, gradients)]
