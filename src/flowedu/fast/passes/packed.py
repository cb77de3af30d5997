"""The pass packed: in a graph that predicts, products with a weight run on its packed form, and add bias and residual."""
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

FEW = 8                      # of so few rows each number of the weight is used too seldom (few_rows_tile.h)


def packed(graph: Graph) -> str:
    """matmul(x, w, transpose_b=True) of a variable w becomes matmul_packed(x, w), where vectors are wide; a bias that is
    added to it, and then a value of its own shape, go into it."""
    if not graph.keeps or kernels.ISA == "base" or any(node.mutates for node in graph.nodes):
        return ""
    made = {n: rebuilt(matmul_packed, n.inputs, {}, n) for n in graph.nodes if _fits(n)}
    substitute(graph, made)
    for before, after in ((matmul_packed, matmul_packed_bias), (matmul_packed_bias, matmul_packed_residual)):
        substitute(graph, dict(_with_term(graph, before, after)))
    return f"{len(made)} products with packed weights" if made else ""


def _fits(node: Node) -> bool:
    if node.op is not matmul:
        return False
    x, w = node.inputs
    return (attributes(node)["transpose_b"] and not attributes(node)["transpose_a"] and w.kind == "variable" and w.ndim == 2
            and w.dtype in (float32, float64) and prod(x.shape[:-1]) > FEW)


def _with_term(graph: Graph, before: Op, after: Op) -> Iterator[tuple[Node, Node]]:
    """(sum of a product and a term that `after` adds, `after`), where nothing else reads the product."""
    readers = graph.consumers()
    for node in graph.nodes:
        if node.op is not add:
            continue
        for y, term in (node.inputs, node.inputs[::-1]):
            wanted = y.shape[-1:] if after is matmul_packed_bias else y.shape
            if y.node is not None and y.node.op is before and y is not term and len(readers[y]) == 1 \
                    and y not in graph.outputs and term.shape == wanted and node.outputs[0].shape == y.shape:
                yield node, rebuilt(after, (*y.node.inputs, term), {}, node)
                break
