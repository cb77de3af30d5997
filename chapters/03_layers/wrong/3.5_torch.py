# updates.momentum
def momentum(w, g, state, lr, wd, t, beta):
    m = beta * state[0] + g
    return w - lr * m - lr * wd * w, m
