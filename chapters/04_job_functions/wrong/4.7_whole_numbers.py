# building.refuses
def gradients(graph, losses, targets, seed=ones):
    graph.training, forward = True, list(graph.nodes)
    graph.forward = len(forward)
    with graph.building():
        return reverse(forward, [(loss, seed(loss.spec)) for loss in losses], targets)
