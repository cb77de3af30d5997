def boxes(sbp, hierarchy, shape):
    total = 1
    for k in hierarchy:
        total *= k

    def of(number):
        box, left = [(0, n) for n in shape], total
        for s, k in zip(sbp, hierarchy):
            left //= k
            at, number = divmod(number, left)
            if split_axis(s) is not None:
                start, stop = box[split_axis(s)]
                box[split_axis(s)] = tuple(start + v for v in bounds(stop - start, k)[at])
        return tuple(box)

    return tuple(of(i) for i in range(total))
