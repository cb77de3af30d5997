# training.casts
def zero(graph, parameters, stage, like):
    return set()
