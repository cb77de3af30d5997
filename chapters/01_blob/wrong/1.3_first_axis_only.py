# values.slice_places
def view(strides, start, step):
    return tuple(s * t for s, t in zip(strides, step)), strides[0] * start[0]
