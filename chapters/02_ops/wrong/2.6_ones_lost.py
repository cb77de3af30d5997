# gradients.unbroadcast
def unbroadcast(grad, shape):
    if grad.shape == shape:
        return grad
    extra = len(grad.shape) - len(shape)
    axes = tuple(range(extra)) + tuple(extra + i for i, n in enumerate(shape) if n == 1
                                       and grad.shape[extra + i] != 1)
    return REGISTRY["sum"].call((grad,), (axes, False))
