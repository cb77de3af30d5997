# values.windows
def shape(x, axis, size, step):
    return (*x.shape[:axis], (x.shape[axis] - size) // step + 1, *x.shape[axis + 1:], size)


def view(strides, axis, step):
    return (*strides[:axis], strides[axis], *strides[axis + 1:], strides[axis] * step), 0
