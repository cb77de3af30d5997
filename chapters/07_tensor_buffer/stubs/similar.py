def similar(sizes, count):
    return [list(range(i, min(i + count, len(sizes)))) for i in range(0, len(sizes), count)]
