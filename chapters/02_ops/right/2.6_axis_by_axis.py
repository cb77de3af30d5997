def unbroadcast(grad, shape):
    while len(grad.shape) > len(shape):
        grad = REGISTRY["sum"](grad, axis=(0,))
    for axis, n in enumerate(shape):
        if n == 1 and grad.shape[axis] != 1:
            grad = REGISTRY["sum"](grad, axis=(axis,), keepdims=True)
    return grad
