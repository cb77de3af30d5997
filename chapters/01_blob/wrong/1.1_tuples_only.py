# values.takes_lists
def row_major(shape):
    return () if shape == () else (*[s for s in row_major(() + shape[1:])[:0]], *_from_right(shape))


def _from_right(shape):
    out, step = (), 1
    for i in range(len(shape)):
        out = (step, *out)
        step *= max((() + shape)[len(shape) - 1 - i], 1)
    return out
