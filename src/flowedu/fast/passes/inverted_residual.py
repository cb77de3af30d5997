"""The pass inverted_residual: in inference, the three convolutions of a block of MobileNetV2 become one op, where what they
hand to each other would not stay in the second cache.
"""
from __future__ import annotations

from math import prod

from flowedu import _kernels as kernels
from flowedu.core.eager.dispatch import get_num_threads
from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.rewrite import attributes, rebuilt
from flowedu.core.ops.elementwise import add
from flowedu.fast.ops.conv_last import conv2d_last_norm
from flowedu.fast.ops.inverted_residual import inverted_residual as block
from flowedu.fast.passes.substitute import substitute

IMAGE = 1 << 18              # bytes of an expanded image, of all pictures: fewer stay in the second cache as they are
WEIGHTS = RING = 1 << 19     # bytes of weights, and of rows that a thread keeps: they stay there, all the while
ROWS = 7                     # of y for each thread, which makes the first rows twice
PIXELS = 48                  # of a picture of y, for a band: of fewer, the last blocks of a product waste much


def inverted_residual(graph: Graph) -> str:
    """expand, depthwise, project (conv2d_last_norm) [-> add of what was expanded], each read by the next alone."""
    if not graph.keeps or kernels.ISA == "base" or any(node.mutates for node in graph.nodes):
        return ""
    readers, outputs = graph.consumers(), set(graph.outputs)

    def alone(value: GraphValue) -> bool:
        return len(readers[value]) == 1 and value not in outputs

    made: dict[Node, Node] = {}
    used: set[Node] = set()                        # where depthwise and 1x1 alternate, a 1x1 could be of two blocks
    for last in graph.nodes:
        stages = _stages(last, alone)
        if not stages or used.intersection(stages):
            continue
        used.update(stages)
        x, y, end = stages[0].inputs[0], last.outputs[0], last
        if alone(y) and readers[y][0].op is add and set(readers[y][0].inputs) == {x, y} and x.shape == y.shape:
            end = readers[y][0]
        attrs = {k: v for k, v in attributes(stages[1]).items() if k not in ("dilations", "groups")}
        last_low, last_high = (attributes(last)[k] for k in ("low", "high"))
        attrs |= dict(last_low=last_low, last_high=last_high, residual=end is not last)
        attrs |= {f"first_{k}": attributes(stages[0])[k] for k in ("strides", "pads")}
        made[end] = rebuilt(block, (x, *(v for s in stages for v in s.inputs[1:])), attrs, end)
    substitute(graph, made)
    return f"{len(made)} inverted residuals run a few rows at a time" if made else ""


def _stages(last: Node, alone) -> list[Node]:
    """The three calls of a block that ends in `last`; none, if there is no such block, or it would not pay."""
    stages = [last]
    while len(stages) < 3:
        value = stages[0].inputs[0] if stages[0].op is conv2d_last_norm else None
        if value is None or value.node is None or not alone(value):
            return []
        stages.insert(0, value.node)
    if any(s.op is not conv2d_last_norm or any(v.kind != "variable" for v in s.inputs[1:]) for s in stages):
        return []
    first, depth, end = map(attributes, stages)
    whole = dict(dilations=(1, 1), groups=1, epsilon=depth["epsilon"])
    plain = whole | dict(strides=(1, 1), pads=(0, 0, 0, 0))
    w, (_, _, width, e) = stages[1].inputs[1], stages[0].outputs[0].shape
    fits = {k: first[k] for k in whole} == whole and {k: end[k] for k in plain} == plain \
        and stages[2].inputs[1].shape[2:] == (1, 1) and depth["dilations"] == (1, 1) \
        and depth["groups"] == e == w.shape[0] and w.shape[1] == 1 \
        and (first["low"], first["high"]) == (depth["low"], depth["high"])
    return stages if fits and _pays(stages, w.shape[2] * width * e) else []


def _pays(stages: list[Node], ring: int) -> bool:
    image, y = stages[0].outputs[0], stages[2].outputs[0]
    item = y.dtype.bytes
    return (prod(y.shape[:2]) >= ROWS * get_num_threads() and prod(y.shape[1:3]) >= PIXELS
            and prod(image.shape) * item >= IMAGE and ring * item <= RING
            and sum(prod(stages[i].inputs[1].shape) for i in (0, 2)) * item <= WEIGHTS)
