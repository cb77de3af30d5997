# built.unbroadcast
def unbroadcast(grad, shape):
    while grad.ndim > len(shape):
        grad = grad.sum(0)
    for i, n in enumerate(shape):
        if n == 1:
            grad = grad.sum(i, keepdim=True)
    return grad
