# values.broadcasts
def broadcast(*shapes, what="broadcast"):
    rank = max((len(s) for s in shapes), default=0)
    full = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(max(sizes) for sizes in zip(*full))
