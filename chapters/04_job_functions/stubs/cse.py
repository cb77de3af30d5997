def cse(graph):
    return "not written yet"
