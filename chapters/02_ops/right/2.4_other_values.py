def sigmoid_x(dy, x):
    s = sigmoid(x)
    return dy * (s - s * s)


def tanh_x(dy, y):
    return dy - dy * y * y


def softplus_x(dy, x):
    return dy - dy * sigmoid(-x)
