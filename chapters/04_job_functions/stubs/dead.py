def dead(graph):
    return "not written yet"
