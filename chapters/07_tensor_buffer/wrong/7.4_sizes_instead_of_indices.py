# batches.each_once
def similar(sizes, count):
    order = sorted(sizes)
    return [order[k:k + count] for k in range(0, len(order), count)]
