# batches.corners
def _align(x, shape, dtype, alignment):
    up = lambda n: -(-n // alignment) * alignment if alignment else n
    height, width = (up(n) for n in x.items[0].shape[:2])
    out = np.zeros((x.size, height, width, shape[2]), dtype.numpy)
    for y, a in zip(out, x.items):
        y[:a.shape[0], :a.shape[1]] = a[:height, :width]
    return out
