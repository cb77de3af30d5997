"""What OneFlow calls an op and its gradient. Ops that are in no table go by their own names."""
from __future__ import annotations

from flowedu.core.grad.nodes import OP_TYPES


def op_type(node) -> str:
    """`broadcast_add`: the type of op in names of operators."""
    return OP_TYPES.get(node.op.name, node.op.name).removeprefix("view::")


def grad_name(node) -> str:
    """`broadcast_add_backward`: what grad_fn prints."""
    return f"{OP_TYPES.get(node.op.name, node.op.name)}_backward"
