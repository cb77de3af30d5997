# batches.each_once
def similar(sizes, count):
    order = [sizes.index(s) for s in sorted(sizes, key=lambda s: s[0] * s[1])]
    return [order[k:k + count] for k in range(0, len(order), count)]
