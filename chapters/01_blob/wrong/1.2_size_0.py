# values.broadcasts
def broadcast(*shapes, what="broadcast"):
    rank = max(map(len, shapes))
    out = []
    for axis in zip(*((1,) * (rank - len(s)) + tuple(s) for s in shapes)):
        m = max(axis)
        if any(n not in (1, m) for n in axis):
            raise ShapeError(f"{what}: {' and '.join(str(tuple(s)) for s in shapes)} do not broadcast")
        out.append(m)
    return tuple(out)
