"""Exercises of chapter 2. Replace each `raise NotImplementedError("your turn")`, then run

    python -m flowedu.learn.exercises chapters/02_ops
"""
import flowedu as flow
from flowedu.core.ops.dispatch import call_below, interpreter  # noqa: F401  (you need call_below in the last exercise)
from flowedu.core.ops.value import Value


def equations():
    """The axis equations of five ops, as a dict with the keys below.

    "transpose"    a matrix transposed
    "sum"          the sum of each row of a matrix
    "max"          the largest element of each row: what two half rows know is not yet the answer
    "softmax"      of each row of a matrix
    "matmul_t"     a @ b.T, both matrices
    """
    raise NotImplementedError("your turn")


def linear_groups():
    """In which groups of inputs are the ops linear? A dict from "add", "sub", "mul", "div", "relu" to lists of tuples.

    The inputs are called x and y. An op is linear in a group if f(sum of parts) is the sum of f(part), where the
    inputs of the group are parts, all of them at once, and the other inputs are whole. [("x",), ("y",)] says: linear in
    x while y is whole, and in y while x is whole. [("x", "y")] says: in both together. [] says: not at all.
    """
    raise NotImplementedError("your turn")


def gauss_gradient(dy, x, y):
    """The gradient of y = exp(-x * x) in x, given dy, that of y. In ops, so that it can be differentiated again."""
    raise NotImplementedError("your turn")


def matmul_gradient(dy, a, b):
    """(da, db) of y = a @ b, for matrices. flow.matmul takes transpose_a and transpose_b."""
    raise NotImplementedError("your turn")


class Dual(Value):
    """A value, and the rate at which it changes when the input of the whole function does."""

    def __init__(self, value, rate):
        self.value, self.rate = value, rate

    @property
    def spec(self):
        return self.value.spec


class Forward:
    """An interpreter that differentiates on the way forward: every Dual goes in and comes out with its rate."""

    def run(self, op, inputs, attrs):
        """Answer one op call with a Dual.

        - If no input is a Dual the call is an ordinary one: pass it on with call_below(op, inputs, attrs).
        - Otherwise compute the value with call_below from the inputs' values (a plain input is its own value, and its
          rate is zero), and the rate by the rule of the op: op.name is "add", "sub", "mul", "neg", "sin" or "exp".
        """
        raise NotImplementedError("your turn")


def forward_derivative(f, x):
    """f'(x) at every element of the tensor x, for an f made of + - * sin and exp, without a tape.

    Nothing to do here: complete Forward.run above. (How much must be kept until the end of f? Compare with backward.)
    """
    with interpreter(Forward()):
        return f(Dual(x, flow.ones_like(x))).rate
