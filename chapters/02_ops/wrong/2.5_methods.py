# built.matmul
def da(dy, a, b, transpose_a, transpose_b):
    g = dy.matmul(b if transpose_b else b.transpose(-1, -2))
    return g.transpose(-1, -2) if transpose_a else g


def db(dy, a, b, transpose_a, transpose_b):
    g = (a if transpose_a else a.transpose(-1, -2)).matmul(dy)
    return g.transpose(-1, -2) if transpose_b else g
