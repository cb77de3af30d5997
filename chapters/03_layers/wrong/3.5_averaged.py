# updates.momentum
def momentum(w, g, state, lr, wd, t, beta):
    m = beta * state[0] - (1 - beta) * lr * g
    return w + m - lr * wd * w, m
