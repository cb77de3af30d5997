"""The smallest interpreter that computes: a call is its record's `ref`, in NumPy. With `reverse` that is a whole autodiff.

    x, y = plain([2.0, 3.0]), plain([5.0, 7.0])
    with interpreter(Plain()), interpreter(Recorder()) as tape:
        z = x * y
        dx, = reverse(tape.calls, [(z, plain([1.0, 1.0]))], [x])          # 5, 7
"""
from __future__ import annotations

import numpy as np

from flowedu.core.ops.value import Value
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec


class PlainValue(Value):
    """A Spec, and an ndarray with its numbers."""

    __slots__ = ("data", "spec")

    def __init__(self, spec: Spec, data: np.ndarray):
        self.spec, self.data = spec, data

    def __repr__(self) -> str:
        return np.array2string(self.data, precision=4)


def plain(numbers) -> PlainValue:
    """A value of an array, or of what NumPy makes one of; float32 of Python's floats."""
    data = np.asarray(numbers) if isinstance(numbers, np.ndarray) else np.float32(numbers)
    return PlainValue(Spec(data.shape, as_dtype(data.dtype)), data)


class Plain:
    """Answers every call at once; no kernel, no memory of its own, no device."""

    def run(self, op, inputs: tuple, attrs: tuple):
        outs = op.infer([x.spec for x in inputs], attrs)
        results = op.ask(op.ref, op.bind([x.data for x in inputs], attrs))
        results = results if isinstance(results, tuple) else (results,)
        made = tuple([PlainValue(s, np.asarray(a)) for s, a in zip(outs, results)])
        return made if len(made) > 1 else made[0]
