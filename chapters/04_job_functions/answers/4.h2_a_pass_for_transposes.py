"""Axis i of the second result is axis second[i] of the first, which is axis first[second[i]] of x.

The program composes the two permutations in the other order. Both orders agree if one permutation
undoes the other, as in the first two examples. graph.check(x) reports the pass for other permutations.
"""
import numpy as np

import flowedu as flow
from flowedu.core.graph import passes
from flowedu.core.graph.rewrite import attributes, rebuilt, replace


def join_transposes(graph):
    """Replace two transposes in a row by one. The pass `dead` removes the first one later."""
    table = {}
    for i, node in enumerate(graph.nodes):
        if node.op.name == "transpose":
            inner = table.get(node.inputs[0], node.inputs[0]).node
            if inner is not None and inner.op is node.op:
                first, second = attributes(inner)["perm"], attributes(node)["perm"]
                joined = tuple(first[axis] for axis in second)
                graph.nodes[i] = rebuilt(node.op, inner.inputs, {"perm": joined}, node)
                table[node.outputs[0]] = graph.nodes[i].outputs[0]
    replace(graph, table)
    return f"{len(table)} joined"


def make_graph(perms):
    """Return a graph that transposes its input once for each of perms, and adds 1."""
    def build(x):
        for perm in perms:
            x = x.permute(*perm)
        return x + 1
    return flow.nn.Graph.trace(build)


def run(x, perms):
    """Compile the graph with the pass. Return its result for x, and the number of its transposes."""
    passes.register_pass(join_transposes, before=passes.dead)
    try:
        graph = make_graph(perms)
        y = graph(flow.tensor(x))
        names = [node.op.name for node in graph._compiled.program.graph.nodes]
        return y.numpy(), names.count("transpose")
    finally:
        passes.PASSES.remove(join_transposes)
        passes.NAMES.remove("join_transposes")


if __name__ == "__main__":
    picture = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    to_last, to_first, swap = (0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2)
    for perms in [(to_last, to_first), (swap, swap), (to_last, swap)]:
        y, count = run(picture, perms)
        right = picture.transpose(perms[0]).transpose(perms[1]) + 1
        print(perms, "right" if np.array_equal(y, right) else "WRONG", "with", count, "transpose")
