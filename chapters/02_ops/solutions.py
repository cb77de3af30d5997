"""Answers to the exercises of chapter 2."""
import flowedu as flow
from flowedu.core.ops.dispatch import call_below, interpreter
from flowedu.core.ops.value import Value


def equations():
    return {"transpose": "ab->ba", "sum": "ab->a", "max": "aB->a", "softmax": "aB->aB", "matmul_t": "mk,nk->mn"}


def linear_groups():
    # relu(3) is not relu(5) + relu(-2); 1 / (a + b) is not 1 / a + 1 / b.
    return {"add": [("x", "y")], "sub": [("x", "y")], "mul": [("x",), ("y",)], "div": [("x",)], "relu": []}


def gauss_gradient(dy, x, y):
    return dy * y * x * -2          # using y saves computing exp(-x * x) again


def matmul_gradient(dy, a, b):
    return flow.matmul(dy, b, transpose_b=True), flow.matmul(a, dy, transpose_a=True)


class Dual(Value):
    """A value, and the rate at which it changes when the input of the whole function does."""

    def __init__(self, value, rate):
        self.value, self.rate = value, rate

    @property
    def spec(self):
        return self.value.spec


class Forward:
    """An interpreter that differentiates on the way forward: every Dual goes in and comes out with its rate."""

    RULES = {"add": lambda x, y, dx, dy: dx + dy,
             "sub": lambda x, y, dx, dy: dx - dy,
             "mul": lambda x, y, dx, dy: dx * y + x * dy,
             "neg": lambda x, dx: dx * -1,
             "sin": lambda x, dx: dx * flow.math.cos(x),
             "exp": lambda x, dx: dx * flow.math.exp(x)}

    def run(self, op, inputs, attrs):
        if not any(isinstance(x, Dual) for x in inputs):
            return call_below(op, inputs, attrs)
        values = tuple(x.value if isinstance(x, Dual) else x for x in inputs)
        rates = tuple(x.rate if isinstance(x, Dual) else x * 0 for x in inputs)
        return Dual(call_below(op, values, attrs), self.RULES[op.name](*values, *rates))


def forward_derivative(f, x):
    with interpreter(Forward()):
        return f(Dual(x, flow.ones_like(x))).rate
