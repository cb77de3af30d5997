"""Answers to the exercises of chapter 1."""
from math import prod


def spec_bytes(shape, bytes_per_element):
    return prod(shape) * bytes_per_element      # the product of no numbers is 1


def strides_of(shape):
    return tuple(prod(shape[i + 1:]) for i in range(len(shape)))


def cell(index, strides, offset):
    return offset + sum(i * s for i, s in zip(index, strides))


def transposed(shape, strides, perm):
    return tuple(shape[p] for p in perm), tuple(strides[p] for p in perm)


def flipped(shape, strides, offset, axis):
    new = list(strides)
    new[axis] = -strides[axis]
    return tuple(new), offset + (shape[axis] - 1) * strides[axis]


def windows(n, stride, offset, width, step):
    count = max((n - width) // step + 1, 0)
    return (count, width), (step * stride, stride), offset
