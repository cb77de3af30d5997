# building.as_eager
def gradients(graph, losses, targets, seed=ones):
    graph.training, forward = True, list(graph.nodes)
    graph.forward = len(forward)
    with graph.building():
        if not losses[0].dtype.is_floating_point:
            raise JobBuildAndInferError("no float")
        return reverse(forward, [(losses[0], seed(losses[0].spec))], targets)
