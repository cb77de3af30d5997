# gradients.matmul
def da(dy, b):
    return matmul(dy, b, transpose_b=True)


def db(dy, a):
    return matmul(a, dy, transpose_a=True)
