def update(graph):
    return "not written yet"
