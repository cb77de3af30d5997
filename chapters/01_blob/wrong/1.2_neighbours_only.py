# values.refuses
def broadcast(*shapes, what="broadcast"):
    rank = max((len(s) for s in shapes), default=0)
    full = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    for a, b in zip(full, full[1:]):
        if any(n != m and 1 not in (n, m) for n, m in zip(a, b)):
            raise ShapeError(f"{what}: {' and '.join(map(str, shapes))}")
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*full))
