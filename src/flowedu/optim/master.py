"""Master weights: the float32 copies that an optimizer keeps of 16-bit parameters, for any update rule.

The next bfloat16 value after 1.0 is 1.0078, so a step of 0.001 is rounded away every time. The rule therefore
updates the copy, where steps add up, and the parameter is the rounded copy. For a rule of either generation
this is:

    copy = copy if round(copy) == w else w           what was written into the parameter since counts
    rule(lr, step, copy, float32(gradient), float32 states)
    w = round(copy)
"""
from __future__ import annotations

from typing import Any

from flowedu.core.layers.group import State, UpdateRule
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.values.dtype import HALVES, float32
from flowedu.ops.halves import round_into

MASTER = State("master", "master_weight", wide=True, master=True)
HEAD = 2                                         # inputs before those of the first parameter: lr, step


class WithMaster:
    """An update op that is given (w, g, copy, *states) for each parameter, where `op` is given (w, g, *states). A parameter
    of more than 16 bits is its own copy."""

    def __init__(self, op: Op):
        self.op, self.name, self.whole, self.complete = op, op.name, op.whole, op.complete

    def __call__(self, *operands: Any, **attrs: Any) -> None:
        self.call(operands, self.complete(attrs))

    def call(self, operands: tuple, attrs: tuple) -> None:
        """A step: tensors, or values of a graph in the making."""
        cast, size, inner, narrow = REGISTRY["cast"], self.op.group + 1, list(operands[:HEAD]), []
        for i in range(HEAD, len(operands), size):
            w, g, copy, *states = operands[i:i + size]
            if w.dtype in HALVES:
                same = REGISTRY["eq"](cast(copy, dtype=w.dtype), w)
                REGISTRY["assign"](REGISTRY["where"](same, copy, cast(w, dtype=float32)), copy)
                narrow.append((copy, w))
                inner += [copy, cast(g, dtype=float32), *states]
            else:
                inner += [w, g, *states]
        self.op.call(tuple(inner), attrs)
        for copy, w in narrow:
            round_into(copy, w)


def with_master(rule: UpdateRule) -> UpdateRule:
    """The same rule on float32 copies."""
    return UpdateRule(WithMaster(rule.op), rule.attrs, (MASTER, *(s._replace(wide=True) for s in rule.states)))
