# batches.corners
def _align(x, shape, dtype, alignment):
    up = lambda n: (n // alignment + 1) * alignment if alignment else n
    height, width = up(max(a.shape[0] for a in x.items)), up(max(a.shape[1] for a in x.items))
    out = np.zeros((x.size, height, width, shape[2]), dtype.numpy)
    for y, a in zip(out, x.items):
        y[:a.shape[0], :a.shape[1]] = a
    return out
