# values.slice_places
def view(strides, start, step):
    offset = 0
    for s, b in zip(strides, start):
        offset += b * max(s, 1)
    return tuple(s * k for s, k in zip(strides, step)), offset
