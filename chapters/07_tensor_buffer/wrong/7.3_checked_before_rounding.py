# batches.too_large
def _align(x, shape, dtype, alignment):
    up = lambda n: -(-n // alignment) * alignment if alignment else n
    height, width = max(a.shape[0] for a in x.items), max(a.shape[1] for a in x.items)
    if height * width > shape[0] * shape[1]:
        raise ShapeError("image.batch_align: too large")
    out = np.zeros((x.size, up(height), up(width), shape[2]), dtype.numpy)
    for y, a in zip(out, x.items):
        y[:a.shape[0], :a.shape[1]] = a
    return out
