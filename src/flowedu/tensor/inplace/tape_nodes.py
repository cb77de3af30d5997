"""Tape nodes that are not op calls, for the gradients of writes into views and of overwritten values."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu.core.eager.dispatch import TapeNode, TensorBase
from flowedu.core.eager.tensor import Tensor
from flowedu.core.grad.custom import Custom
from flowedu.core.ops import elementwise, view
from flowedu.core.values.dtype import bool_, dtype, int64
from flowedu.core.values.storage import from_numpy

_WHERE, _CONSTANT = elementwise.where, view.constant


def zeros(shape: tuple, dtype: dtype) -> Tensor:
    return _CONSTANT.call((), (tuple(shape), 0, dtype))


class Overwritten(Custom):
    """Tape node of a tensor x that was overwritten by independent values; x's gradient is zero.

    The inputs are x, and the values if they have a history.
    """

    def backward(self, node: TapeNode, douts: list) -> list:
        return [zeros(self.shapes[0], douts[0].dtype), douts[0]][:len(self.shapes)]


class WroteIntoView(Custom):
    """Tape node of base', which is base with `value` in the region that a chain of view ops selects.

    The inputs are base, and value if it has a history. The gradient of value is the same view of the gradient
    of base'. The gradient of base is the gradient of base' with zeros in the region.
    """

    def __init__(self, inputs: Sequence[TensorBase], steps: list, cls: type) -> None:
        super().__init__("copy_slices", inputs)
        self.steps, self.cls = steps, cls

    def look(self, t: Tensor) -> Tensor:
        for op, attrs, _ in self.steps:
            t = op.call((t,), attrs)
        return t

    def mask(self) -> Tensor:
        """Return a mask of the base's shape that is True inside the view."""
        size = int(np.prod(self.shapes[0]))
        places = self.look(from_numpy(np.arange(size).reshape(self.shapes[0]), int64, self.cls)).numpy()
        mask = np.zeros(size, bool)
        mask[places.reshape(-1)] = True
        return from_numpy(mask.reshape(self.shapes[0]), bool_, self.cls)

    def backward(self, node: TapeNode, douts: list) -> list:
        d, = douts
        grads: list[Tensor | None] = [None] * len(self.shapes)
        if node.edges[0] is not None:
            grads[0] = _WHERE.call((self.mask(), zeros((), d.dtype), d), ())
        if len(grads) > 1:
            grads[1] = self.look(d)
        return grads
