def gradients(graph, losses, targets, seed=ones):
    bad = [v for v in losses if not v.dtype.is_floating_point]
    if bad:
        raise JobBuildAndInferError("a loss of whole numbers", expected="float32 or float64",
                                    got=str(bad[0].spec))
    nodes = tuple(graph.nodes)
    graph.forward = len(nodes)
    graph.training = True

    def visit(node):
        graph.placement = node.placement

    with graph.building():
        begin = tuple((v, seed(v.spec)) for v in losses)
        return list(reverse(nodes, begin, list(targets), visit))
