"""Differentiating on the way forward, without a tape: an interpreter of values that carry their rate of change.

    rate = derivative(lambda x: x * flow.math.sin(x), x)        # at every element of x

Reverse mode keeps values until backward comes; this keeps nothing, and costs one pass for each input. It is chapter 2's
example of a way of running that the library does not know.
"""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.ops.call import call_below, interpreter
from flowedu.core.ops.define import Op
from flowedu.core.ops.elementwise import add, cos, exp, mul, neg, sin, sub
from flowedu.core.ops.value import Value
from flowedu.core.values.spec import Spec
from flowedu.errors import UnsupportedError


class Dual(Value):
    """A value, and the rate at which it changes when the input of the whole function does."""

    __slots__ = ("rate", "value")

    def __init__(self, value, rate):
        self.value, self.rate = value, rate

    @property
    def spec(self) -> Spec:
        return self.value.spec


class Forward:
    """The interpreter: Duals go into an op, and a Dual comes out. Calls without one are passed on."""

    def run(self, op: Op, inputs: tuple, attrs: tuple):
        """The answer to one call: its value, computed below, and its rate, by the rule of the op.

        Raises UnsupportedError: there is no rule for this op.
        """
        if not any(isinstance(x, Dual) for x in inputs):
            return call_below(op, inputs, attrs)
        values = [x.value if isinstance(x, Dual) else x for x in inputs]
        rates = [x.rate if isinstance(x, Dual) else x * 0 for x in inputs]
        y = call_below(op, tuple(values), attrs)
        if op is add or op is sub:
            rate = rates[0] + rates[1] if op is add else rates[0] - rates[1]
        elif op is mul:
            rate = rates[0] * values[1] + values[0] * rates[1]
        elif op is neg:
            rate = -rates[0]
        elif op is sin:
            rate = rates[0] * cos(values[0])
        elif op is exp:
            rate = rates[0] * y
        else:
            raise no_rule(op)
        return Dual(y, rate)


def no_rule(op: Op) -> UnsupportedError:
    return UnsupportedError(f"forward: no rule for the rate of {op.name}", expected="add, sub, mul, neg, sin, exp",
                            got=op.signature, fix="flow.grad differentiates backwards, through every op")


def derivative(f: Callable, x):
    """f'(x) at every element of the tensor x, for an f made of + - * neg, sin and exp that works element by element."""
    with interpreter(Forward()):
        return f(Dual(x, x * 0 + 1)).rate
