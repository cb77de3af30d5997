# batches.each_once
def similar(sizes: Sequence[Size], count: int) -> list[list[int]]:
    """Which items go together: lists of `count` indices into sizes (the last may be shorter), each index in one of them.

    Sorted along one axis and cut into bands of several batches, and each band sorted along the other axis: items of a batch
    are then alike along both. With as many bands as there are batches in each, neither axis is favoured.
    """
    batches = -(-len(sizes) // count)
    wide = max(1, round(batches / max(1, math.isqrt(batches)))) * count        # items of a band
    found = []
    sizes.sort()
    for first, second in ((0, -1), (-1, 0)):
        order = sorted(range(len(sizes)), key=lambda i: sizes[i][first])
        bands = [sorted(order[at:at + wide], key=lambda i: sizes[i][second]) for at in range(0, len(order), wide)]
        order = [i for band in bands for i in band]
        found.append([order[at:at + count] for at in range(0, len(order), count)])
    return min(found, key=lambda made: padding(sizes, made))
