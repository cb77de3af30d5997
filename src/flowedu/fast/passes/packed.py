"""The pass packed: in a graph that predicts, products with a weight run on its packed form."""
from __future__ import annotations

from math import prod

from flowedu import _kernels as kernels
from flowedu.core.graph.ir import Graph, Node
from flowedu.core.graph.rewrite import attributes, rebuilt, replace
from flowedu.core.ops.matmul import matmul
from flowedu.core.values.dtype import float32, float64
from flowedu.fast.ops.matmul_packed import matmul_packed

FEW = 8                      # of so few rows each number of the weight is used too seldom (few_rows_tile.h)


def packed(graph: Graph) -> str:
    """matmul(x, w, transpose_b=True) of a variable w becomes matmul_packed(x, w), where vectors are wide."""
    if not graph.keeps or kernels.ISA == "base" or any(node.mutates for node in graph.nodes):
        return ""
    made = {n: rebuilt(matmul_packed, n.inputs, {}, n) for n in graph.nodes if _fits(n)}
    graph.nodes = [made.get(n, n) for n in graph.nodes]
    replace(graph, {old.outputs[0]: new.outputs[0] for old, new in made.items()})
    return f"{len(made)} products with packed weights" if made else ""


def _fits(node: Node) -> bool:
    if node.op is not matmul:
        return False
    x, w = node.inputs
    return (attributes(node)["transpose_b"] and not attributes(node)["transpose_a"] and w.kind == "variable" and w.ndim == 2
            and w.dtype in (float32, float64) and prod(x.shape[:-1]) > FEW)
