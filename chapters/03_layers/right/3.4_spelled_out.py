def forward(x, gamma, beta, begin_norm_axis, epsilon):
    over = tuple(range(begin_norm_axis, x.ndim))
    mean = x.mean(over, keepdims=True)
    inv_std = 1 / np.sqrt(x.var(over, keepdims=True) + epsilon)
    rows = x.shape[:begin_norm_axis]
    return (x - mean) * inv_std * gamma + beta, mean.reshape(rows), inv_std.reshape(rows)


def backward(dy, x, gamma, mean, inv_std, begin_norm_axis):
    rows, cols = tuple(range(begin_norm_axis)), tuple(range(begin_norm_axis, x.ndim))

    def lift(v):
        return v.reshape(*v.shape, *(1,) * len(cols))

    r = lift(inv_std)
    xhat, g = (x - lift(mean)) * r, dy * gamma
    dx = r * (g - g.mean(cols, keepdims=True) - xhat * (g * xhat).mean(cols, keepdims=True))
    return dx, (dy * xhat).sum(rows), dy.sum(rows)
