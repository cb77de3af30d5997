def forward(x, gamma, beta, begin_norm_axis, epsilon):
    rows = x.reshape(int(np.prod(x.shape[:begin_norm_axis])), gamma.size).astype(np.float64)
    mean = rows.sum(1) / rows.shape[1]
    away = rows - mean[:, None]
    inv_std = ((away ** 2).sum(1) / rows.shape[1] + epsilon) ** -0.5
    y = np.einsum("ij,i,j->ij", away, inv_std, gamma.ravel()) + beta.ravel()
    front = x.shape[:begin_norm_axis]
    return (y.reshape(x.shape).astype(x.dtype), mean.reshape(front).astype(x.dtype),
            inv_std.reshape(front).astype(x.dtype))


def backward(dy, x, gamma, mean, inv_std, begin_norm_axis):
    m, n = mean.size, gamma.size
    rows, d = x.reshape(m, n), dy.reshape(m, n)
    r = inv_std.reshape(m, 1)
    hat, g = (rows - mean.reshape(m, 1)) * r, d * gamma.ravel()
    dx = (n * g - g.sum(1, keepdims=True) - hat * np.einsum("ij,ij->i", g, hat)[:, None]) * r / n
    return (dx.reshape(x.shape), np.einsum("ij,ij->j", d, hat).reshape(gamma.shape),
            d.sum(0).reshape(gamma.shape))
