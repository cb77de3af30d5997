# batches.each_once
def similar(sizes, count):
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    return [order[k * count:(k + 1) * count] for k in range(len(order) // count)]
