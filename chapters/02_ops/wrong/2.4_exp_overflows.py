# gradients.far
def sigmoid_x(dy, y):
    return dy * y * (1 - y)


def tanh_x(dy, y):
    return dy * (1 - square(y))


def softplus_x(dy, x):
    return dy * exp(x) / (1 + exp(x))
