# values.as_numpy
def row_major(shape):
    out, step = [], 4
    for n in reversed(shape):
        out.append(step)
        step *= max(n, 1)
    return tuple(reversed(out))
