# building.as_eager
def gradients(graph, losses, targets, seed=ones):
    graph.training, forward = True, list(graph.nodes)
    graph.forward = len(forward)
    with graph.building():
        for loss in losses:
            if not loss.dtype.is_floating_point:
                raise JobBuildAndInferError("no float")
        seeds = [(loss, constant(shape=loss.shape, value=1.0 / loss.spec.size, dtype=loss.dtype)) for loss in losses]
        return reverse(forward, seeds, targets)
