# gradients.matmul_again
def da(dy, b, transpose_a, transpose_b):
    return _grad_a(dy, b.detach(), transpose_a, transpose_b)


def db(dy, a, b, transpose_a, transpose_b):
    return _grad_b(dy, a.detach(), transpose_a, transpose_b, b.shape)
