# layouts.boxes
def boxes(sbp, hierarchy, shape):
    found = []
    for i, coords in enumerate(itertools.product(*map(range, hierarchy))):
        box = [(0, n) for n in shape]
        for s in sbp:
            if split_axis(s) is not None:
                box[split_axis(s)] = bounds(shape[split_axis(s)],
                                            len(list(itertools.product(*map(range, hierarchy)))))[i]
        found.append(tuple(box))
    return tuple(found)
