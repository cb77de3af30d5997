"""The backward pass of a graph: the walk of autograd/reverse.py, run while the graph is being built."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from flowedu.autograd.reverse import reverse
from flowedu.blob.spec import Spec
from flowedu.errors import JobBuildAndInferError
from flowedu.graph.ir import Graph, GraphValue, Node
from flowedu.ops.define import REGISTRY
from flowedu.optim import loss_scale


def gradients(graph: Graph, losses: Sequence[GraphValue], targets: Sequence[GraphValue],
              seed: Callable[[Spec], GraphValue] = loss_scale.seed) -> list[GraphValue | None]:
    """Append nodes that compute d(sum of all elements of all losses)/d(target). None where there is no path.

    seed(Spec of a loss): the gradient to begin with, ones unless the loss is scaled.
    """
    graph.training = True
    forward = list(graph.nodes)
    graph.forward = len(forward)
    ones: dict = {}

    def visit(node):                               # an op's gradient is computed where the op is
        graph.placement = node.placement

    with graph.building():
        for loss in losses:
            if not loss.dtype.is_floating_point:
                raise JobBuildAndInferError("minimize: the loss is not floating point", expected="float32 or float64",
                                            got=str(loss.spec), fix="cast it, or pass the loss rather than the labels")
            if loss.spec not in ones:
                ones[loss.spec] = seed(loss.spec)
        return reverse(forward, [(loss, ones[loss.spec]) for loss in losses], targets, visit)


def seeded_gradients(building, nodes: Sequence[Node], loss: GraphValue, gradient: GraphValue | None,
                     targets: Sequence[GraphValue]) -> list[GraphValue | None]:
    """The same for one loss over `nodes`, and the gradient it starts from (None: ones), appended by a Tracer.

    It knows which nodes are `frozen`, whose activations are computed again (`checkpoints`), and puts each node's backward
    into the `scope` of its module.
    """
    building.graph.training = True

    def visit(node):
        building.scope[:] = [building.owner[node]] if building.owner.get(node) else []
        return building.checkpoints[node].again(node) if node in building.checkpoints else None

    with building.raw():
        if gradient is None:
            gradient = REGISTRY["constant"](shape=loss.shape, value=1.0, dtype=loss.dtype)
        try:
            return reverse([n for n in nodes if n not in building.frozen], [(loss, gradient)], targets, visit)
        finally:
            building.scope.clear()
