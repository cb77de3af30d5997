"""Exercises of chapter 6. Replace each `raise NotImplementedError("your turn")`, then run

    python -m flowedu_course.exercises chapters/06_sbp

Here, an sbp is a text: "B", "P", "S0", "S1" ... A value on several devices is a list with one array per
device.
"""


def legal(f, inputs, scatter, gather):
    """Find all signatures of f on two devices by trial, and return them as a set of tuples.

    A tuple has one sbp for each input, and then one for the output. The sbp of an array is "B", "P", or "S"
    and one of its axes.

    Args:
        f: a function of NumPy arrays that returns one array. It may raise ValueError if shapes do not fit.
        inputs: the arrays.
        scatter: scatter(array, sbp) returns the arrays of the two devices.
        gather: gather(parts, sbp) returns the value of parts with this sbp, or None if the parts cannot have
            it (for example, if they should be copies but differ).
    """
    raise NotImplementedError("your turn")


def softmax(parts, all_reduce):
    """Compute softmax along the rows of a matrix that is S(1), and return one array per device.

    Args:
        parts: one array per device, of shape (rows, columns of this device). The numbers may be as large as
            1000.
        all_reduce: all_reduce(arrays, op) with op "sum" or "max" takes one array per device, and returns the
            result that all devices get. Use it twice, each time on arrays of shape (rows, 1).
    """
    raise NotImplementedError("your turn")


def axes():
    """Return {name: axis equation} of three ops, each with as many lower-case letters as are correct.

    "norm"       x (b, t, c) -> (b, t, c): (x - x.mean(2)) / x.std(2)
    "attention"  q (b, h, t, d), k (b, h, s, d), v (b, h, s, e) -> (b, h, t, e): softmax(q @ kᵀ, over s) @ v
    "gram"       x (n, i) -> (i, j): xᵀ @ x, the products of all pairs of columns

    An axis has the same letter in all arrays. An axis with a lower-case letter may be cut in all arrays that
    have it, and an output without it is then P. An axis with a capital letter stays whole. With the correct
    equation, flow.custom_op(name, sbp=equation) makes an op that is split like any other.
    """
    raise NotImplementedError("your turn")
