"""The layout pass: keeps images channels-last (NHWC) inside the graph where this is faster.

Users see NCHW everywhere. However, a depthwise convolution is 4 to 100 times as fast when the channels of a
pixel are adjacent, and a 1x1 convolution becomes one large matrix product instead of one per image. A dense
3x3 or 5x5 convolution is faster with NCHW. The pass

    1. finds the calls with an NHWC counterpart: convolutions, batch norm, elementwise ops, sums, concat,
       and slices;
    2. joins calls that pass images to each other into islands;
    3. sums the gain of each island (`gain`) and the cost of layout changes at its borders (`border`);
    4. rewrites the islands with a net gain, with a transpose at each border.
"""
from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.rewrite import attributes, rebuilt, replace
from flowedu.core.ops import concat, reduce
from flowedu.core.ops.define import Op
from flowedu.core.ops.elementwise import mul
from flowedu.core.ops.view import cast, constant, contiguous, expand, transpose
from flowedu.fast.ops.conv_last import conv2d_last, conv2d_last_input_grad, conv2d_last_weight_grad
from flowedu.fast.ops.norm_clip import batch_norm_clip, batch_norm_clip_grad
from flowedu.ops.bias import bias_add
from flowedu.ops.conv import conv2d, conv2d_input_grad, conv2d_weight_grad
from flowedu.ops.norm import batch_norm, batch_norm_grad, batch_norm_infer
from flowedu.ops.pool import avg_pool2d, avg_pool2d_grad

TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
PLACE = {0: 0, 1: 3, 2: 1, 3: 2}          # axis of NCHW -> axis of NHWC
CONVOLUTIONS = {conv2d: (conv2d_last, (0,), (0,)), conv2d_input_grad: (conv2d_last_input_grad, (0,), (0,)),
                conv2d_weight_grad: (conv2d_last_weight_grad, (0, 1), ())}
NORMS = {batch_norm: (0,), batch_norm_clip: (0,), batch_norm_infer: (0,), batch_norm_grad: (0, 1),
         batch_norm_clip_grad: (0, 1)}
FOLDS = (reduce.sum, reduce.max, reduce.min, reduce.prod)
RANGES = {concat.slice: ("start", "stop", "step"), concat.slice_grad: ("shape", "start", "stop", "step"),
          expand: ("shape",)}

# Nanoseconds on one thread, measured with AVX-512 at 3.7 GHz. Only their ratios matter.
COPY = 1.0                                # cost of converting one element to the other layout
DEPTHWISE, PLANE = 1.0, 35.0              # gain of a depthwise convolution per element, per (image, channel)
SMALL_POINTWISE = 0.004                   # gain per flop of a 1x1 convolution of fewer than 16 pixels
DENSE = 0.012                             # loss per flop of any other convolution


class Twin(NamedTuple):
    """The NHWC form of a call: op, attributes, and indices of the inputs and outputs that are images."""

    op: Op
    attrs: dict
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def layout(graph: Graph) -> str:
    """Convert islands of image ops to channels-last where this is faster."""
    if not any(gain(node) > 0 for node in graph.nodes):
        return ""
    open_pools(graph)
    twins = {node: t for node in graph.nodes for t in [twin(node)] if t is not None}
    chosen: set[Node] = set()
    for island in islands(twins):
        if sum(gain(node) for node in island) > border(graph, island, twins):
            chosen.update(island)
    if not chosen:
        return ""
    changes = rewrite(graph, {n: twins[n] for n in chosen})
    return f"{len(chosen)} ops run channels last, {changes} changes of layout"


# ---- NHWC forms
def twin(node: Node) -> Twin | None:
    """Return the NHWC form of a node, or None."""
    op, attrs = node.op, attributes(node)
    if op in CONVOLUTIONS:
        last, *images = CONVOLUTIONS[op]
        return Twin(last, attrs, *images)
    if op.program is not None:
        return _elementwise(node, attrs)
    if not node.inputs or node.inputs[0].ndim != 4:
        return None
    if op in NORMS:
        return Twin(op, {**attrs, "axis": 3}, NORMS[op], (0,)) if attrs["axis"] % 4 == 1 else None
    if op in FOLDS:
        kept = [PLACE[i] for i in range(4) if i not in attrs["axis"]]
        new = {**attrs, "axis": tuple(sorted(PLACE[i] for i in attrs["axis"]))}
        if attrs["keepdims"]:
            return Twin(op, new, (0,), (0,))
        return Twin(op, new, (0,), ()) if kept == sorted(kept) else None
    if op is cast:
        return Twin(op, attrs, (0,), (0,))
    if op is concat.concat:
        return Twin(op, {**attrs, "axis": PLACE[attrs["axis"] % 4]}, tuple(range(len(node.inputs))), (0,))
    if op in RANGES and node.outputs[0].ndim == 4:
        return Twin(op, {**attrs, **{a: permuted(attrs[a], TO_LAST) for a in RANGES[op]}}, (0,), (0,))
    return None


def _elementwise(node: Node, attrs: dict) -> Twin | None:
    """Return the NHWC form. Operands must be images (or broadcast to them), scalars, or bias_add's vector."""
    images = tuple(i for i, x in enumerate(node.inputs) if x.ndim == 4)
    if not images or node.outputs[0].ndim != 4:
        return None
    if node.op is bias_add:
        attrs = {**attrs, "axis": PLACE[attrs["axis"]]}
    elif any(x.ndim not in (0, 4) for x in node.inputs):
        return None
    return Twin(node.op, attrs, images, (0,))


def permuted(shape: tuple[int, ...], perm: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(shape[i] for i in perm)


def islands(twins: dict[Node, Twin]) -> list[list[Node]]:
    """Return groups of nodes that are connected by images, in graph order."""
    parent = {n: n for n in twins}

    def root(n: Node) -> Node:
        while parent[n] is not n:
            parent[n] = n = parent[parent[n]]
        return n

    owner: dict[GraphValue, Node] = {}
    for node, t in twins.items():
        for v in images(node, t):
            parent[root(node)] = root(owner.setdefault(v, node))
    groups: dict[Node, list[Node]] = {}
    for node in twins:
        groups.setdefault(root(node), []).append(node)
    return list(groups.values())


def images(node: Node, t: Twin) -> list[GraphValue]:
    return [node.inputs[i] for i in t.inputs] + [node.outputs[i] for i in t.outputs]


def open_pools(graph: Graph) -> None:
    """Replace average pooling over the whole image by a sum times a constant, which have NHWC forms."""
    nodes, table = [], {}
    for node in graph.nodes:
        attrs = attributes(node)
        x: Any = node.inputs[0] if node.inputs else None
        back = node.op is avg_pool2d_grad
        if not (back or node.op is avg_pool2d) or any(attrs["pads"]) or tuple(attrs["ksize"]) != tuple(
                attrs["hw"] if back else x.shape[2:]):
            nodes.append(node)
            continue

        def call(op: Op, *inputs: GraphValue, near: Node = node, **attrs: Any) -> GraphValue:
            new = rebuilt(op, inputs, attrs, near, graph.fresh_name(op.name))
            graph.claim(new.name)
            nodes.append(new)
            return new.outputs[0]

        share = call(constant, shape=(), value=1.0 / prod(attrs["ksize"]), dtype=x.dtype)
        y = call(mul, x if back else call(reduce.sum, x, axis=(2, 3), keepdims=True), share)
        table[node.outputs[0]] = call(expand, y, shape=node.outputs[0].shape) if back else y
    graph.nodes = nodes
    replace(graph, table)


# ---- cost model
def gain(node: Node) -> float:
    """Return the nanoseconds that a call saves in NHWC."""
    if node.op not in CONVOLUTIONS:
        return 0.0
    attrs, out = attributes(node), node.outputs[0]
    a, b = node.inputs
    x, w, y = {conv2d: (a, b, out), conv2d_input_grad: (out, b, a), conv2d_weight_grad: (b, out, a)}[node.op]
    if attrs["groups"] > 1 and w.shape[1] == 1 and w.shape[0] == attrs["groups"]:
        return DEPTHWISE * prod(x.shape) + PLANE * prod(x.shape[:2])
    flops = 2 * prod(y.shape) * prod(w.shape[1:])
    if (w.shape[2:] == (1, 1) and attrs["groups"] == 1 and attrs["strides"] == (1, 1)
        and not any(attrs["pads"])):
        return SMALL_POINTWISE * flops if prod(y.shape[2:]) < 16 else 0.0
    return -DENSE * flops


def border(graph: Graph, island: list[Node], twins: dict[Node, Twin]) -> float:
    """Return the nanoseconds for layout changes of values that enter or leave an island."""
    inside = set(island)
    values = {v for n in island for v in images(n, twins[n])}
    crossing = {v for v in values if v.node not in inside}
    for node in graph.nodes:
        if node not in inside:
            crossing.update(v for v in node.inputs if v in values)
    crossing.update(v for v in graph.outputs if v in values)
    return sum(0.0 if same_memory(v.shape) or was_last(v) else COPY * prod(v.shape) for v in crossing)


def was_last(v: GraphValue) -> bool:
    """Return True if `v` is the NCHW view of an NHWC value, such as a channels-last image of the user."""
    return v.node is not None and v.node.op is transpose and attributes(v.node)["perm"] == TO_FIRST


def same_memory(shape: tuple[int, ...]) -> bool:
    """Return True if NCHW and NHWC have the same order of elements in memory."""
    return shape[1] == 1 or prod(shape[2:]) == 1


# ---- rewriting
def rewrite(graph: Graph, chosen: dict[Node, Twin]) -> int:
    """Replace nodes by their NHWC forms and return the number of copies to another layout."""
    last: dict[GraphValue, GraphValue] = {}        # NCHW value -> its NHWC form
    first: dict[GraphValue, GraphValue] = {}       # removed NCHW value -> NCHW view of its NHWC form
    nodes: list[Node] = []
    copies = 0

    def emit(op: Op, x: GraphValue, attrs: dict[str, Any], near: Node) -> GraphValue:
        node = rebuilt(op, (x,), attrs, near, graph.fresh_name(op.name))
        graph.claim(node.name)
        nodes.append(node)
        return node.outputs[0]

    def to_last(x: GraphValue, near: Node) -> GraphValue:
        nonlocal copies
        if x not in last and was_last(x):
            last[x] = x.node.inputs[0]
        if x not in last:
            last[x] = emit(transpose, plain.get(x, x), {"perm": TO_LAST}, near)
            if not same_memory(x.shape):
                last[x] = emit(contiguous, last[x], {}, near)
                copies += 1
        return last[x]

    def to_first(x: GraphValue, near: Node) -> GraphValue:
        nonlocal copies
        if x in gone and x not in first:
            first[x] = emit(transpose, last[x], {"perm": TO_FIRST}, near)
            copies += not same_memory(x.shape)
        return first.get(x, plain.get(x, x))

    gone: set[GraphValue] = set()
    plain: dict[GraphValue, GraphValue] = {}       # outputs that are not images: old -> new
    for node in graph.nodes:
        t = chosen.get(node)
        if t is None:
            node.inputs = tuple(to_first(x, node) for x in node.inputs)
            nodes.append(node)
            continue
        inputs = [to_last(x, node) if i in t.inputs else to_first(x, node) for i, x in enumerate(node.inputs)]
        new = rebuilt(t.op, inputs, t.attrs, node)
        nodes.append(new)
        for i, (old, y) in enumerate(zip(node.outputs, new.outputs)):
            if i in t.outputs:
                last[old] = y
                gone.add(old)
            else:
                plain[old] = y
    graph.outputs = [to_first(v, v.node) if v in gone else plain.get(v, v) for v in graph.outputs]
    graph.nodes = nodes
    return copies
