def similar(sizes, count):
    order = sorted(range(len(sizes)), key=lambda i: (sizes[i][0] * sizes[i][1], sizes[i]))
    found = [tuple(order[:count])] if order else []
    while len(order) > count:
        order = order[count:]
        found.append(tuple(order[:count]))
    return found
