"""The pass packed multiplies by packed weights and merges additions of bias and residual, in inference."""
from __future__ import annotations

from collections.abc import Iterator
from math import prod

from flowedu import _kernels as kernels
from flowedu.core.graph.ir import Graph, Node
from flowedu.core.graph.rewrite import attributes, rebuilt
from flowedu.core.ops.define import Op
from flowedu.core.ops.elementwise import add
from flowedu.core.ops.matmul import matmul
from flowedu.core.values.dtype import float32, float64
from flowedu.fast.ops.matmul_packed import matmul_packed, matmul_packed_bias, matmul_packed_residual
from flowedu.fast.passes.substitute import substitute

FEW = 8                      # with at most so many rows, packing does not pay (few_rows_tile.h)


def packed(graph: Graph) -> str:
    """Replace matmul(x, w, transpose_b=True) by matmul_packed(x, w) for variables w on CPUs with SIMD.

    Additions of a bias, and then of a value with the shape of the result, are merged into the op.
    """
    if not graph.keeps or kernels.ISA == "base" or any(node.mutates for node in graph.nodes):
        return ""
    products = {n: rebuilt(matmul_packed, n.inputs, {}, n) for n in graph.nodes if _fits(n)}
    substitute(graph, products)
    for before, after in ((matmul_packed, matmul_packed_bias), (matmul_packed_bias, matmul_packed_residual)):
        substitute(graph, dict(_with_term(graph, before, after)))
    return f"{len(products)} products with packed weights" if products else ""


def _fits(node: Node) -> bool:
    if node.op is not matmul:
        return False
    x, w = node.inputs
    return (attributes(node)["transpose_b"] and not attributes(node)["transpose_a"] and w.kind == "variable"
            and w.ndim == 2
            and w.dtype in (float32, float64) and prod(x.shape[:-1]) > FEW)


def _with_term(graph: Graph, before: Op, after: Op) -> Iterator[tuple[Node, Node]]:
    """Yield (add, `after` node) for each sum of a term and a `before` product that has no other reader."""
    readers = graph.consumers()
    for node in graph.nodes:
        if node.op is not add:
            continue
        for y, term in (node.inputs, node.inputs[::-1]):
            shape = y.shape[-1:] if after is matmul_packed_bias else y.shape
            if y.node is not None and y.node.op is before and y is not term and len(readers[y]) == 1 \
                    and y not in graph.outputs and term.shape == shape and node.outputs[0].shape == y.shape:
                yield node, rebuilt(after, (*y.node.inputs, term), {}, node)
                break
