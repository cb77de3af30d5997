def _align(x, shape, dtype, alignment):
    check_pictures("image.batch_align", x, shape[2])
    tall, wide = max(a.shape[0] for a in x.items), max(a.shape[1] for a in x.items)
    if alignment:
        tall, wide = tall + -tall % alignment, wide + -wide % alignment
    if tall * wide > shape[0] * shape[1]:
        raise ShapeError("image.batch_align: too large", expected=str(shape), got=str((tall, wide)))
    for i, a in enumerate(x.items):
        if a.dtype != dtype.numpy:
            raise wrong_dtype("image.batch_align", x.where(i), dtype, a.dtype)
    return np.stack([np.pad(a, ((0, tall - a.shape[0]), (0, wide - a.shape[1]), (0, 0))) for a in x.items])
