"""OneFlow's names of ops, tape nodes, and graph nodes. Ops outside the tables keep their own names."""
from __future__ import annotations

from flowedu.core.eager.dispatch import TapeNode, connect
from flowedu.core.ops.call import OpBase

OP_TYPES = {                       # op: OneFlow's name if it differs
    "add": "broadcast_add", "sub": "broadcast_sub", "mul": "broadcast_mul", "div": "broadcast_div",
    "pow": "broadcast_pow", "maximum": "broadcast_maximum", "minimum": "broadcast_minimum",
    "sum": "reduce_sum",
    "max": "reduce_max", "min": "reduce_min", "prod": "reduce_prod", "contiguous": "copy", "neg": "negative",
    "batch_norm": "normalization", "batch_norm_infer": "normalization_infer",
    "batch_norm_grad": "normalization_grad",
    "max_pool2d": "max_pool_2d", "avg_pool2d": "avg_pool_2d", "eq": "broadcast_equal",
    "ne": "broadcast_not_equal",
    "lt": "broadcast_less", "le": "broadcast_less_equal", "gt": "broadcast_greater",
    "ge": "broadcast_greater_equal",
    "reshape": "view::reshape", "transpose": "view::transpose", "slice": "view::slice",
    "expand": "view::expand", }
_SCALAR = {"add", "sub", "mul", "div", "pow"}


def type_name(op: OpBase) -> str:
    """Return OneFlow's name of an op, such as `broadcast_add`."""
    return OP_TYPES.get(op.name, op.name)


def node_name(node: TapeNode) -> str:
    """Return the name of a tape node, such as `broadcast_add_backward` or `scalar_add_backward`."""
    if node.entry is None:
        return f"{node.custom.name}_backward"
    name = node.op.name
    if name in _SCALAR and None in node.edges and () in node.shapes:
        i = node.edges.index(None)
        if node.shapes[i] == ():
            return f"scalar_{name}_backward"
    return f"{type_name(node.op)}_backward"


connect(node_name=node_name)
