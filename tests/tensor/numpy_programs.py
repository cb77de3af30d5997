"""The steps of programs.py on NumPy arrays, whose views share memory as those of tensors do; slopes replace
backward.
"""
import numpy as np

STEP = 1e-6


class Array:
    """NumPy array with the methods that programs use."""

    def __init__(self, a):
        self.a = a

    shape = property(lambda self: self.a.shape)
    ndim = property(lambda self: self.a.ndim)

    def is_contiguous(self):
        return self.a.flags.c_contiguous

    def numpy(self):
        return self.a

    def item(self):
        return self.a.item()

    def detach(self):
        return Array(self.a.view())

    def __getitem__(self, index):
        # a view, even of one element
        return Array(self.a[index, ...] if isinstance(index, int) else self.a[index])

    def __setitem__(self, index, value):
        self.a[index] = value.a if isinstance(value, Array) else value

    def write(self, value):
        self.a[...] = value
        return self

    def __iadd__(self, other):
        return self.add_(other)


def plain(x):
    return x.a if isinstance(x, Array) else x


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


VALUES = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
          "div": lambda a, b: a / b,
          "neg": np.negative, "zero": lambda a: 0 * a, "fill": lambda a, v: 0 * a + v, "exp": np.exp,
          "copy": lambda a, b: b, "tanh": np.tanh, "sigmoid": sigmoid, "square": np.square, "abs": np.abs,
          "clamp": np.clip, "relu": lambda a: np.maximum(a, 0), "clone": np.copy, "sum": np.sum}
for name, f in VALUES.items():
    setattr(Array, name, lambda self, *args, f=f: Array(np.array(f(self.a, *map(plain, args)), order="C")))
    setattr(Array, name + "_", lambda self, *args, f=f: self.write(f(self.a, *map(plain, args))))
VIEWS = {"transpose": np.swapaxes, "view": lambda a, *s: a.reshape(s), "unsqueeze": np.expand_dims,
         "squeeze": np.squeeze,
         "narrow": lambda a, dim, start, n: a[(slice(None),) * dim + (slice(start, start + n),)]}
for name, view in VIEWS.items():
    setattr(Array, name, lambda self, *args, f=view: Array(f(self.a, *args)))
Array.__add__ = lambda self, other: self.add(other)
Array.__mul__ = lambda self, other: self.mul(other)


def finite_differences(program, arrays: list, count: int) -> list:
    """Return d program(arrays) / d(each of the first `count` arrays) by finite differences. program: arrays
    -> number.
    """
    found = []
    for n in range(count):
        found.append(np.zeros(arrays[n].shape))
        for k in np.ndindex(*arrays[n].shape):
            for sign in (1, -1):
                moved = [a.copy() for a in arrays]
                moved[n][k] += sign * STEP
                found[n][k] += sign * program([Array(a) for a in moved]) / (2 * STEP)
    return found
