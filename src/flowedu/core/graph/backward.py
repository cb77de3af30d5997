"""The backward pass of a graph, appended by core/ops/reverse.py while the graph is built."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.ops.reverse import reverse
from flowedu.core.ops.view import constant
from flowedu.core.values.spec import Spec
from flowedu.errors import JobBuildAndInferError


def ones(spec: Spec) -> GraphValue:
    """Return a gradient of ones, the default seed of a backward pass."""
    return constant(shape=spec.shape, value=1.0, dtype=spec.dtype)


def gradients(graph: Graph, losses: Sequence[GraphValue], targets: Sequence[GraphValue],
              seed: Callable[[Spec], GraphValue] = ones) -> list[GraphValue | None]:
    """Append nodes that compute d(sum of all elements of all losses)/d(target).

    Returns one gradient (or None) per target. `seed(spec)` returns the gradient of a loss.
    """
    for loss in losses:
        if not loss.dtype.is_floating_point:
            raise JobBuildAndInferError("minimize: the loss is not floating point",
                                        expected="float32 or float64", got=str(loss.spec),
                                        fix="cast it, or pass the loss rather than the labels")
    graph.training = True
    forward = list(graph.nodes)
    graph.forward = len(forward)
    seeds: dict = {}

    def visit(node: Node) -> None:         # the gradient of an op runs on the devices of the op
        graph.placement = node.placement

    with graph.building():
        for loss in losses:
            if loss.spec not in seeds:
                seeds[loss.spec] = seed(loss.spec)
        return reverse(forward, [(loss, seeds[loss.spec]) for loss in losses], targets, visit)
