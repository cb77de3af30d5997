# gradients.unbroadcast_again
def unbroadcast(grad, shape):
    import flowedu as flow
    a = grad.numpy()
    extra = a.ndim - len(shape)
    a = a.sum(tuple(range(extra)))
    axes = tuple(i for i, n in enumerate(shape) if n == 1)
    return flow.tensor(a.sum(axes, keepdims=True).reshape(shape))
