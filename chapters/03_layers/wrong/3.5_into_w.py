# updates.momentum
def momentum(w, g, state, lr, wd, t, beta):
    m = beta * state[0] - lr * g
    w -= lr * wd * w
    w += m
    return w, m
