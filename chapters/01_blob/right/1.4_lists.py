def shape(x, axis, size, step):
    sizes = list(x.shape)
    windows, at = 0, 0
    while at + size <= sizes[axis]:
        windows, at = windows + 1, at + step
    sizes[axis] = windows
    sizes.append(size)
    return tuple(sizes)


def view(strides, axis, step):
    strides = list(strides)
    strides.append(strides[axis])
    strides[axis] *= step
    return tuple(strides), 0
