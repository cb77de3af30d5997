# building.placed
def gradients(graph, losses, targets, seed=ones):
    for loss in losses:
        if not loss.dtype.is_floating_point:
            raise JobBuildAndInferError("the loss is a whole number", expected="float32", got=str(loss.spec))
    forward = list(graph.nodes)
    graph.training, graph.forward = True, len(forward)
    with graph.building():
        return reverse(forward, [(loss, seed(loss.spec)) for loss in losses], targets)
