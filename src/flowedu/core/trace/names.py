"""What OneFlow calls an op, its outputs and its gradient. Ops and outputs that are in no table go by their own names."""
from __future__ import annotations

from flowedu.core.grad.nodes import OP_TYPES

OUTPUTS = {  # record: its first output
    **dict.fromkeys("""matmul conv2d reshape cast concat constant contiguous where gather dropout expand
                       sparse_softmax_cross_entropy""".split(), "out"),
    **dict.fromkeys(("sum", "max", "min", "prod"), "output_tensor"), "log_softmax": "prob", "transpose": "output",
}


def op_type(node) -> str:
    """`broadcast_add`: the type of op in names of operators."""
    return OP_TYPES.get(node.op.name, node.op.name).removeprefix("view::")


def output_name(node, i: int = 0) -> str:
    """`z_0`: the i-th output of a node."""
    own = node.op.outputs[i] if i < len(node.op.outputs) else "out"
    return f"{OUTPUTS.get(node.op.name, own) if i == 0 else own}_0"


def grad_name(node) -> str:
    """`broadcast_add_backward`: what grad_fn prints."""
    return f"{OP_TYPES.get(node.op.name, node.op.name)}_backward"
