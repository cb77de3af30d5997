# layouts.boxes
def boxes(sbp, hierarchy, shape):
    found = []
    for coords in itertools.product(*map(range, hierarchy)):
        box = [(0, n) for n in shape]
        for s, k, c in zip(sbp, hierarchy, coords):
            axis = split_axis(s)
            if axis is not None:
                start, stop = box[axis]
                a, b = bounds(stop - start, k)[c]
                box[axis] = (start + a, start + b)
        found.append(box)
    return found
