def momentum(w, g, state, lr, wd, t, beta):
    moved = state[0] * beta
    moved = moved + (-lr) * g
    shrunk = w * (1 - lr * wd)
    return shrunk + moved, moved
