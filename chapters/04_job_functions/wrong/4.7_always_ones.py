# building.seeded
def gradients(graph, losses, targets, seed=ones):
    graph.training, forward = True, list(graph.nodes)
    graph.forward = len(forward)
    with graph.building():
        for loss in losses:
            if not loss.dtype.is_floating_point:
                raise JobBuildAndInferError("no float")
        return reverse(forward, [(loss, ones(loss.spec)) for loss in losses], targets)
