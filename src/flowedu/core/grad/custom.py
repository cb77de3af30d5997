"""Nodes that are not op calls: autograd.Function, writes into views, crossings between local and global tensors."""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.eager.dispatch import TensorBase


class Custom:
    """What a node without an op knows (see custom_node in core/eager/node.pxi)."""

    outputs = 1

    def __init__(self, name: str, inputs: Sequence[TensorBase]):
        self.name, self.shapes = name, tuple(x._sizes() for x in inputs)

    def backward(self, node, douts: list) -> Sequence:
        raise NotImplementedError

    def release(self) -> bool:
        """Free what was kept for backward; whether a second backward is impossible then."""
        return False
