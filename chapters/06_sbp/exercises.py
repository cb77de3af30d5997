"""Exercises of chapter 6. Replace each `raise NotImplementedError("your turn")`, then run

    python -m flowedu_course.exercises chapters/06_sbp

An sbp is a text here: "B", "P", "S0", "S1" ... What several devices have is a list, one array for each.
"""


def legal(f, inputs, scatter, gather):
    """All signatures of f on two devices, found by trying: a set of tuples, an sbp for each input and one for the output.

    f: a function of NumPy arrays that gives one; it may raise ValueError where shapes do not fit. inputs:
        arrays.
    scatter(array, sbp): what the two devices have. gather(parts, sbp): the value of parts that lie so; None
    where they cannot (copies that differ, say). An array may be "B", "P", or "S" and one of its axes.
    """
    raise NotImplementedError("your turn")


def softmax(parts, all_reduce):
    """softmax along the rows of a matrix that is S(1): [array (rows, columns of this device)] -> the same.

    all_reduce(arrays, op), op "sum" or "max": every device gives an array, and all get this one. Use it
    twice, on (rows, 1) each time. The numbers may be as large as 1000.
    """
    raise NotImplementedError("your turn")


def axes():
    """{name: axis equation} of three ops, each with as many small letters as are right.

    "norm"       x (b, t, c) -> (b, t, c): (x - x.mean(2)) / x.std(2)
    "attention"  q (b, h, t, d), k (b, h, s, d), v (b, h, s, e) -> (b, h, t, e): softmax(q @ kᵀ, over s) @ v
    "gram"       x (n, i) -> (i, j): xᵀ @ x, the products of all pairs of columns

    An axis has one letter in all arrays. Small: it may be cut, wherever it appears, and an output without it
    is P. Capital: it stays whole. With the right one, flow.custom_op(name, sbp=equation) makes an op that is
    split like any other.
    """
    raise NotImplementedError("your turn")
