def reshape_strides(shape, strides, new):
    """Where the second element along each new axis lies says the stride; then all places are looked at."""
    import itertools
    total = prod(shape)
    if total == 0:
        return row_major(new)
    if total > 4096:                               # too many to look at: by runs of axes
        return _by_runs(shape, strides, new)
    at = [sum(i * s for i, s in zip(index, strides)) for index in itertools.product(*map(range, shape))]
    steps = row_major(new)
    out = tuple(at[t] if n > 1 else t for n, t in zip(new, steps))
    for number, index in enumerate(itertools.product(*map(range, new))):
        if sum(i * s for i, s in zip(index, out)) != at[number]:
            return None
    return out


def _by_runs(shape, strides, new):
    import math
    old = [(n, s) for n, s in zip(shape, strides) if n != 1]
    wanted, out = [n for n in new if n != 1], []
    while old:
        a, b = [old.pop(0)], [wanted.pop(0)]
        while math.prod(n for n, _ in a) != math.prod(b):
            if math.prod(n for n, _ in a) < math.prod(b):
                a.append(old.pop(0))
            else:
                b.append(wanted.pop(0))
        if any(s != m * t for (_, s), (m, t) in zip(a, a[1:])):
            return None
        step = a[-1][1]
        for i in range(len(b)):
            out.append(step * math.prod(b[i + 1:]))
    found = iter(out)
    return tuple(next(found) if n != 1 else 1 for n in new)
