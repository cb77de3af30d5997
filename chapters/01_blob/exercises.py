"""Exercises of chapter 1. Replace each `raise NotImplementedError("your turn")`, then run

    python -m flowedu.learn.exercises chapters/01_blob
"""


def spec_bytes(shape, bytes_per_element):
    """How many bytes does an array of this shape take?

    shape is a tuple, and may be empty: a single number, an array of no axes.
    """
    raise NotImplementedError("your turn")


def strides_of(shape):
    """The strides, in elements, of a row-major array: a tuple as long as shape.

    The last axis steps by 1, and every axis steps over all that lies to its right.
    """
    raise NotImplementedError("your turn")


def cell(index, strides, offset):
    """Which cell of the block holds the element at `index`, a tuple such as (1, 2)?"""
    raise NotImplementedError("your turn")


def transposed(shape, strides, perm):
    """(shape, strides) of the array whose axis i is the old axis perm[i]: two tuples."""
    raise NotImplementedError("your turn")


def flipped(shape, strides, offset, axis):
    """(strides, offset) of the same array with `axis` running backwards.

    A stride may be negative. Where does the first element of the flipped array lie?
    """
    raise NotImplementedError("your turn")


def windows(n, stride, offset, width, step):
    """All windows of `width` elements of a one-axis array, each `step` elements after the one before.

    The array has n elements, `stride` cells apart, from cell `offset` on. Returns (shape, strides, offset) of a view of
    shape (number of windows, width). Only whole windows count. For n=5, width=3, step=1 over the numbers 0 1 2 3 4 the
    view is [[0, 1, 2], [1, 2, 3], [2, 3, 4]]: cells appear in it more than once, and none is copied.
    """
    raise NotImplementedError("your turn")
