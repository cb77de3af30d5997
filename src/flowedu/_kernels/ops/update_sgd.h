/* Stochastic gradient descent: rules for update.h. */
FE_UPDATE_LOOP(sgd, w[i] -= lr * g + decay * w[i])

/* OneFlow 0.4's momentum includes the learning rate. The number: beta. */
FE_UPDATE_LOOP(momentum, const T a = b1 * m[i] - lr * g; m[i] = a; w[i] += a - decay * w[i])

/* Momentum in flow.optim. Numbers: beta, dampening; the flag: Nesterov's. */
FE_UPDATE_LOOP(dampened, m[i] = b1 * m[i] + r2 * g; w[i] -= lr * (flag ? g + b1 * m[i] : m[i]) + decay * w[i])

#define FE_SGD_RULES(X)             \
    X(sgd_update, 2, sgd)           \
    X(momentum_update, 3, momentum) \
    X(momentum_step, 3, dampened)
