"""One-line descriptions of tensors without values for printed graphs, and OneFlow's names of outputs."""
from __future__ import annotations

from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.devices import device_name
from flowedu.core.values import dtype as dt

LAZY = "is_lazy='True', "
OUTPUTS = {  # {record: OneFlow's name of its first output}
    **dict.fromkeys("""matmul conv2d reshape cast concat constant contiguous where gather dropout expand
                       sparse_softmax_cross_entropy""".split(), "out"),
    **dict.fromkeys(("sum", "max", "min", "prod"), "output_tensor"), "log_softmax": "prob",
    "transpose": "output", }


def line(kind: str, name: str, text: str | None) -> str:
    """Format a leaf of a printed graph: `(INPUT:_G_0_input.0.0_2:tensor(...))`.

    text: description of the tensor, or None if the value is None.
    """
    return f"({kind}:{name}:{text})" if text is not None else f"[WARNING]({kind}:{name}:{type(None)})"


def meta(x: Tensor) -> str:
    """Format `x` without values: `tensor(..., size=(2, 3), dtype=flowedu.float32, requires_grad=True)`."""
    end = ", requires_grad=True" if x.requires_grad else ""
    if x.grad_fn is not None:
        name = x.grad_fn.name() if hasattr(x.grad_fn, "name") else x.grad_fn
        end = f", grad_fn=<{name}>"
    return meta_text(tuple(x.shape), x.dtype, end, lazy=x.is_lazy, place=0 if x.global_layout is not None
                     else x._device)


def meta_text(shape: tuple, dtype: dt.dtype, end: str = "", lazy: bool = False, place: int = 0) -> str:
    """Format a tensor from its parts.

    A line of more than 80 columns is broken before `end`, as print does.
    """
    device = f"device='{device_name(place)}', " if place else ""
    text = f"tensor(..., {device}{LAZY if lazy else ''}size={shape}, dtype={dtype!r}"
    if end and len(text) + len(end) > 80:
        end = ",\n       " + end[2:]
    return text + end + ")"


def output_name(node, i: int = 0) -> str:
    """Return OneFlow's name of the i-th output of a node, such as `z_0`."""
    default = node.op.outputs[i] if i < len(node.op.outputs) else "out"
    return f"{OUTPUTS.get(node.op.name, default) if i == 0 else default}_0"
