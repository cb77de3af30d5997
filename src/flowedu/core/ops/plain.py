"""A minimal interpreter that runs the `ref` of an op in NumPy; `reverse` computes gradients.

    x, y = plain([2.0, 3.0]), plain([5.0, 7.0])
    with interpreter(Plain()), interpreter(Recorder()) as tape:
        z = x * y
        dx, = reverse(tape.calls, [(z, plain([1.0, 1.0]))], [x])          # 5, 7
"""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from flowedu.core.ops.define import Op
from flowedu.core.ops.value import Value
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec


class PlainValue(Value):
    """A Spec with its data, an ndarray."""

    __slots__ = ("data", "spec")

    def __init__(self, spec: Spec, data: np.ndarray):
        self.spec, self.data = spec, data

    def __repr__(self) -> str:
        return np.array2string(self.data, precision=4)


def plain(data: ArrayLike) -> PlainValue:
    """Return the value of an array, or of Python numbers, which become float32."""
    data = np.asarray(data, None if isinstance(data, np.ndarray) else np.float32)
    return PlainValue(Spec(data.shape, as_dtype(data.dtype)), data)


class Plain:
    """An interpreter that runs every call at once, without kernels or memory management."""

    def run(self, op: Op, inputs: tuple, attrs: tuple) -> PlainValue | tuple[PlainValue, ...]:
        outs = op.infer([x.spec for x in inputs], attrs)
        results = op.ask(op.ref, op.bind([x.data for x in inputs], attrs))
        results = results if isinstance(results, tuple) else (results,)
        values = tuple([PlainValue(s, np.asarray(a)) for s, a in zip(outs, results)])
        return values if len(values) > 1 else values[0]
