# updates.adam
def adam(w, g, state, lr, wd, t, beta1, beta2, epsilon, do_bias_correction):
    m, v = state
    m *= beta1
    m += (1 - beta1) * g
    v *= beta2
    v += (1 - beta2) * g * g
    if do_bias_correction:
        lr = lr * np.sqrt(1 - beta2 ** t) / (1 - beta1 ** t)
    return w - lr * (m / (np.sqrt(v) + epsilon) + wd * w), m, v
