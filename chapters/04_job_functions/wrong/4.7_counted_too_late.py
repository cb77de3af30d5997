# building.told
def gradients(graph, losses, targets, seed=ones):
    graph.training, forward = True, list(graph.nodes)
    with graph.building():
        for loss in losses:
            if not loss.dtype.is_floating_point:
                raise JobBuildAndInferError("no float")
        found = reverse(forward, [(loss, seed(loss.spec)) for loss in losses], targets)
    graph.forward = len(graph.nodes)
    return found
