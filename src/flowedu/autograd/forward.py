"""Forward-mode differentiation without a tape: an interpreter that computes values with their derivatives.

    rate = derivative(lambda x: x * flow.math.sin(x), x)        # at every element of x

Reverse mode stores values until the backward pass; forward mode stores nothing, and needs one pass for each
input. Chapter 2 shows it as an example of an interpreter that the library itself does not use.
"""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.ops.call import call_below, interpreter
from flowedu.core.ops.define import Op
from flowedu.core.ops.elementwise import add, cos, exp, mul, neg, sin, sub
from flowedu.core.ops.value import Value
from flowedu.core.ops.view import constant
from flowedu.core.values.spec import Spec
from flowedu.errors import UnsupportedError


class Dual(Value):
    """Value and its rate of change with respect to the input of the whole function."""

    __slots__ = ("rate", "value")

    def __init__(self, value, rate):
        self.value, self.rate = value, rate

    @property
    def spec(self) -> Spec:
        return self.value.spec


def zero_rate(x):
    """Return the rate of a constant: zeros of its shape, also where x is inf or NaN."""
    return constant(shape=x.shape, value=0.0, dtype=x.dtype)


class Forward:
    """Interpreter that computes ops of Duals, with a Dual as the result, and passes other calls on."""

    def run(self, op: Op, inputs: tuple, attrs: tuple):
        """Compute the value of a call below this interpreter, and its rate by the rule of the op.

        Raises UnsupportedError if the op has no rule.
        """
        if not any(isinstance(x, Dual) for x in inputs):
            return call_below(op, inputs, attrs)
        values = [x.value if isinstance(x, Dual) else x for x in inputs]
        rates = [x.rate if isinstance(x, Dual) else zero_rate(x) for x in inputs]
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
    return UnsupportedError(f"forward: no rule for the rate of {op.name}",
                            expected="add, sub, mul, neg, sin, exp",
                            got=op.signature, fix="flow.grad differentiates backwards, through every op")


def derivative(f: Callable, x):
    """Return f'(x) at every element of the tensor x, for an elementwise f made of + - * neg, sin, and exp."""
    with interpreter(Forward()):
        return f(Dual(x, x * 0 + 1)).rate
