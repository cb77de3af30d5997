"""The pass inverted_residual merges the three convolutions of a MobileNetV2 block into one op, in inference.

It applies where the intermediate images do not fit into the L2 cache.
"""
from __future__ import annotations

from collections.abc import Callable
from math import prod

from flowedu import _kernels as kernels
from flowedu.core.eager.dispatch import get_num_threads
from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.rewrite import attributes, rebuilt
from flowedu.core.ops.elementwise import add
from flowedu.fast.ops.conv_last import conv2d_last_norm
from flowedu.fast.ops.inverted_residual import inverted_residual as block
from flowedu.fast.passes.substitute import substitute

# Minimum bytes of the expanded images of a batch. Smaller ones stay in the L2 cache without this op.
IMAGE = 1 << 18
# Maximum bytes of the weights, and of the rows that a thread buffers, so that both stay in the L2 cache.
WEIGHTS = RING = 1 << 19
# Minimum rows of y per thread. Each thread recomputes its first expanded rows.
ROWS = 7
# Minimum pixels of an image of y. With fewer, the last blocks of a matrix product are mostly padding.
PIXELS = 48


def inverted_residual(graph: Graph) -> str:
    """Merge expand -> depthwise -> project (conv2d_last_norm) [-> add of x] into inverted_residual.

    The values between these ops must have no other readers.
    """
    if not graph.keeps or kernels.ISA == "base" or any(node.mutates for node in graph.nodes):
        return ""
    readers, outputs = graph.consumers(), set(graph.outputs)

    def alone(value: GraphValue) -> bool:
        return len(readers[value]) == 1 and value not in outputs

    new_nodes: dict[Node, Node] = {}
    used: set[Node] = set()                        # a 1x1 convolution may match as end and start of a block
    for last in graph.nodes:
        stages = _stages(last, alone)
        if not stages or used.intersection(stages):
            continue
        used.update(stages)
        x, y, end = stages[0].inputs[0], last.outputs[0], last
        if (alone(y) and readers[y][0].op is add and set(readers[y][0].inputs) == {x, y}
            and x.shape == y.shape):
            end = readers[y][0]
        attrs = {k: v for k, v in attributes(stages[1]).items() if k not in ("dilations", "groups")}
        last_low, last_high = (attributes(last)[k] for k in ("low", "high"))
        attrs |= dict(last_low=last_low, last_high=last_high, residual=end is not last)
        attrs |= {f"first_{k}": attributes(stages[0])[k] for k in ("strides", "pads")}
        new_nodes[end] = rebuilt(block, (x, *(v for s in stages for v in s.inputs[1:])), attrs, end)
    substitute(graph, new_nodes)
    return f"{len(new_nodes)} inverted residuals run a few rows at a time" if new_nodes else ""


def _stages(last: Node, alone: Callable[[GraphValue], bool]) -> list[Node]:
    """Return the three calls of a block that ends in `last`, or [] if no block of use ends there."""
    stages = [last]
    while len(stages) < 3:
        value = stages[0].inputs[0] if stages[0].op is conv2d_last_norm else None
        if value is None or value.node is None or not alone(value):
            return []
        stages.insert(0, value.node)
    if any(s.op is not conv2d_last_norm or any(v.kind != "variable" for v in s.inputs[1:]) for s in stages):
        return []
    return stages if _is_block(stages) and _pays(stages) else []


def _is_block(stages: list[Node]) -> bool:
    """Return True if the op computes what these three convolutions do."""
    expand, depthwise, project = map(attributes, stages)
    filters, channels = stages[1].inputs[1], stages[0].outputs[0].shape[3]

    # The op has one epsilon, and one range (low, high) for both expanded images.
    if not expand["epsilon"] == depthwise["epsilon"] == project["epsilon"]:
        return False
    if (expand["low"], expand["high"]) != (depthwise["low"], depthwise["high"]):
        return False

    # The first convolution may have strides and pads, but reads all channels of adjacent pixels.
    if expand["dilations"] != (1, 1) or expand["groups"] != 1:
        return False

    # The second one filters each channel on its own, and the op has no argument for its dilations.
    if depthwise["dilations"] != (1, 1):
        return False
    if not depthwise["groups"] == channels == filters.shape[0] or filters.shape[1] != 1:
        return False

    # The third one is a matrix product over the channels of each pixel.
    if stages[2].inputs[1].shape[2:] != (1, 1):
        return False
    if project["dilations"] != (1, 1) or project["groups"] != 1:
        return False
    return project["strides"] == (1, 1) and project["pads"] == (0, 0, 0, 0)


def _pays(stages: list[Node]) -> bool:
    image, y = stages[0].outputs[0], stages[2].outputs[0]
    item = y.dtype.bytes
    ring = stages[1].inputs[1].shape[2] * prod(image.shape[2:])      # rows of a filter x a row of the image
    return (prod(y.shape[:2]) >= ROWS * get_num_threads() and prod(y.shape[1:3]) >= PIXELS
            and prod(image.shape) * item >= IMAGE and ring * item <= RING
            and sum(prod(stages[i].inputs[1].shape) for i in (0, 2)) * item <= WEIGHTS)
