# gradients.matmul
def da(dy, b):
    return matmul(dy, b)


def db(dy, a):
    return matmul(a, dy)
