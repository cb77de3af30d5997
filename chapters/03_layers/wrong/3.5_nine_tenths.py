# updates.momentum
def momentum(w, g, state, lr, wd, t, beta):
    m = 0.9 * state[0] - lr * g
    return w + m - lr * wd * w, m
