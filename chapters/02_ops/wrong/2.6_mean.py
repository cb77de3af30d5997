# gradients.unbroadcast
def unbroadcast(grad, shape):
    if grad.shape == shape:
        return grad
    extra = len(grad.shape) - len(shape)
    axes = tuple(range(extra)) + tuple(extra + i for i, n in enumerate(shape) if n == 1)
    copies = 1
    for a in axes:
        copies *= grad.shape[a]
    return REGISTRY["reshape"](REGISTRY["sum"].call((grad,), (axes, False)) / copies, shape=shape)
