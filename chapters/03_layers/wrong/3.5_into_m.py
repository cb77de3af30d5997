# updates.momentum
def momentum(w, g, state, lr, wd, t, beta):
    m = state[0]
    m *= beta
    m -= lr * g
    return w + m - lr * wd * w, m
