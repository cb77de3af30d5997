# batches.each_once
def similar(sizes, count):
    order, found = sorted(range(len(sizes)), key=lambda i: sizes[i][0]), []
    for at in range(0, len(order), 3 * count + 1):
        band = sorted(order[at:at + 3 * count + 1], key=lambda i: sizes[i][1])
        found += [band[k:k + count] for k in range(0, len(band), count)]
    return found
