# layers.far_from_zero
def forward(x, gamma, beta, begin_norm_axis, epsilon):
    over = tuple(range(begin_norm_axis, x.ndim))
    mean = x.mean(over, keepdims=True)
    inv_std = 1 / np.sqrt((x * x).mean(over, keepdims=True) - mean * mean + epsilon)
    rows = x.shape[:begin_norm_axis]
    return ((x - mean) * inv_std * gamma + beta).astype(x.dtype), mean.reshape(rows), inv_std.reshape(rows)


def backward(dy, x, gamma, mean, inv_std, begin_norm_axis):
    rows, cols = tuple(range(begin_norm_axis)), tuple(range(begin_norm_axis, x.ndim))
    ones = (1,) * len(cols)
    r = inv_std.reshape(inv_std.shape + ones)
    xhat, g = (x - mean.reshape(mean.shape + ones)) * r, dy * gamma
    dx = r * (g - g.mean(cols, keepdims=True) - xhat * (g * xhat).mean(cols, keepdims=True))
    return dx.astype(x.dtype), (dy * xhat).sum(rows), dy.sum(rows)
