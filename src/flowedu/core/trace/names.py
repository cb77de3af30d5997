"""Names of ops and gradients in graphs. tensor/node_names.py replaces them by OneFlow's."""
from __future__ import annotations

from flowedu.core import extensions


def type_name(op) -> str:
    return extensions.op_type_name(op) if extensions.op_type_name else op.name


def op_type(node) -> str:
    """Return the op type that names of operators contain, such as `broadcast_add`."""
    return type_name(node.op).removeprefix("view::")


def grad_name(node) -> str:
    """Return the name that grad_fn prints, such as `broadcast_add_backward`."""
    return f"{type_name(node.op)}_backward"
