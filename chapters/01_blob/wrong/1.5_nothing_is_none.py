# values.reshape_views
def reshape_strides(shape, strides, new):
    if 0 in shape:
        return None
    if tuple(strides) == row_major(shape):
        return row_major(new)
    runs = []
    for n, s in zip(shape, strides):
        if n != 1 and runs and runs[-1][1] == s * n:
            runs[-1] = runs[-1][0] * n, s
        elif n != 1:
            runs.append((n, s))
    out, room, step = [], 1, 1
    for n in reversed(new):
        if n != 1 and room == 1 and runs:
            room, step = runs.pop()
        if room % n:
            return None
        out.append(step)
        room, step = room // n, step * n
    return tuple(reversed(out))
