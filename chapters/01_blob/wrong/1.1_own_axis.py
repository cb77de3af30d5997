# values.as_numpy
def row_major(shape):
    out, step = [], 1
    for n in reversed(shape):
        step *= max(n, 1)
        out.append(step)
    return tuple(reversed(out))
