def row_major(shape):
    if len(shape) == 0:
        return ()
    rest = row_major(shape[1:])
    return (rest[0] * max(shape[1], 1) if rest else 1, *rest)
