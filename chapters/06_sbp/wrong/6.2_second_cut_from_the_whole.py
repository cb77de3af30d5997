# layouts.boxes
def boxes(sbp, hierarchy, shape):
    found = []
    for coords in itertools.product(*map(range, hierarchy)):
        box = [(0, n) for n in shape]
        for s, k, c in zip(sbp, hierarchy, coords):
            axis = split_axis(s)
            if axis is not None:
                box[axis] = bounds(shape[axis], k)[c]
        found.append(tuple(box))
    return tuple(found)
