"""Tape nodes without an op: autograd.Function, writes into views, local-global conversions."""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.eager.dispatch import TapeNode, TensorBase


class Custom:
    """Base of the backward rules of nodes without an op (see make_custom_node, eager/node.pxi)."""

    outputs = 1

    def __init__(self, name: str, inputs: Sequence[TensorBase]):
        self.name, self.shapes = name, tuple(x._sizes() for x in inputs)

    def backward(self, node: TapeNode, douts: list) -> Sequence:
        raise NotImplementedError

    def release(self) -> bool:
        """Free the values saved for backward. Return True if that prevents a second backward."""
        return False
