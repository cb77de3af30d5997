def adam(w, g, state, lr, wd, t, beta1, beta2, epsilon, do_bias_correction):
    m = state[0] + (1 - beta1) * (g - state[0])
    v = state[1] + (1 - beta2) * (g ** 2 - state[1])
    a, b = (1 - beta1 ** t, 1 - beta2 ** t) if do_bias_correction else (1, 1)
    rate = lr * b ** 0.5 / a
    return w - rate * wd * w - rate * m / (v ** 0.5 + epsilon), m, v
