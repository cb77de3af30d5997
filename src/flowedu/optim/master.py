"""Master weights: the float32 copies that an optimizer keeps of 16-bit parameters, for any update rule.

The next bfloat16 value after 1.0 is 1.0078, so adding a step of 0.001 to a weight of 1.0 does not change the
weight. The rule therefore updates the copy, in which small steps add up, and the parameter is the rounded
copy. Rules of tensor optimizers and of job functions work in the same way:

    copy = copy if round(copy) == w else w           use w if the program has written into it
    rule(lr, step, copy, float32(gradient), float32 states)
    w = round(copy)
"""
from __future__ import annotations

from typing import Any

from flowedu.core.layers.group import State, UpdateRule
from flowedu.core.ops.define import Op
from flowedu.core.ops.elementwise import eq, where
from flowedu.core.ops.view import assign, cast
from flowedu.core.values.dtype import HALVES, float32
from flowedu.ops.halves import round_into

MASTER = State("master", "master_weight", wide=True, master=True)
HEAD = 2                                         # inputs before those of the first parameter: lr, step


class WithMaster:
    """Update op with operands (w, g, copy, *states) per parameter, based on `op` with (w, g, *states).

    A parameter of more than 16 bits has no copy, and `op` updates it directly.
    """

    def __init__(self, op: Op):
        self.op, self.name = op, op.name
        self.whole, self.complete = op.whole, op.complete

    def __call__(self, *operands: Any, **attrs: Any) -> None:
        self.call(operands, self.complete(attrs))

    def call(self, operands: tuple, attrs: tuple) -> None:
        """Make a step on tensors, or on values of a graph under construction."""
        size = self.op.group + 1
        inner, narrow = list(operands[:HEAD]), []
        for i in range(HEAD, len(operands), size):
            w, g, copy, *states = operands[i:i + size]
            if w.dtype in HALVES:
                same = eq(cast(copy, dtype=w.dtype), w)
                assign(where(same, copy, cast(w, dtype=float32)), copy)
                narrow.append((copy, w))
                inner += [copy, cast(g, dtype=float32), *states]
            else:
                inner += [w, g, *states]
        self.op.call(tuple(inner), attrs)
        for copy, w in narrow:
            round_into(copy, w)


def with_master(rule: UpdateRule) -> UpdateRule:
    """Return the same rule on float32 copies."""
    op: Any = WithMaster(rule.op)
    return UpdateRule(op, rule.attrs, (MASTER, *(s._replace(wide=True) for s in rule.states)))
