"""What an op of a graph and its gradient are called: as OneFlow calls them, where tensor/node_names.py is there."""
from __future__ import annotations

from flowedu.core.extensions import extension


def type_name(op) -> str:
    return extension("OneFlow's names of ops", lambda op: op.name)(op)


def op_type(node) -> str:
    """`broadcast_add`: the type of op in names of operators."""
    return type_name(node.op).removeprefix("view::")


def grad_name(node) -> str:
    """`broadcast_add_backward`: what grad_fn prints."""
    return f"{type_name(node.op)}_backward"
