# updates.adam
def adam(w, g, state, lr, wd, t, beta1, beta2, epsilon, do_bias_correction):
    m, v = beta1 * state[0] + (1 - beta1) * g, beta2 * state[1] + (1 - beta2) * g * g
    if True:
        lr = lr * np.sqrt(1 - beta2 ** t) / (1 - beta1 ** t)
    return w - lr * (m / (np.sqrt(v) + epsilon) + wd * w), m, v
