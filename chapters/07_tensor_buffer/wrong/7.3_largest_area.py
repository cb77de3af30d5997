# batches.corners
def _align(x, shape, dtype, alignment):
    up = lambda n: -(-n // alignment) * alignment if alignment else n
    largest = max(x.items, key=lambda a: a.size)
    height, width = up(largest.shape[0]), up(largest.shape[1])
    out = np.zeros((x.size, height, width, shape[2]), dtype.numpy)
    for y, a in zip(out, x.items):
        y[:a.shape[0], :a.shape[1]] = a
    return out
