# batches.too_large
def _align(x: TensorBuffer, shape: tuple, dtype: dt.dtype, alignment: int) -> np.ndarray:
    what = "image.batch_align"
    for i, a in enumerate(x.items):
        if a.dtype != dtype.numpy:
            raise wrong_dtype(what, x.where(i), dtype, a.dtype)
    up = lambda n: -(-n // alignment) * alignment if alignment else n
    height, width = (up(max((a.shape[k] for a in x.items), default=0)) for k in (0, 1))
    if height * width > shape[0] * shape[1]:
        tall = max(range(x.size), key=lambda i: x.items[i].size)
        raise ShapeError(f"{what}: the batch does not fit into shape", expected=f"at most {shape[0] * shape[1]} pixels "
                         f"each, shape={shape}", got=f"({height}, {width}, {shape[2]}) for all; the largest is "
                         f"{x.where(tall)}, {x.items[tall].shape}", fix="raise shape, or resize the pictures first")
    out = np.zeros((x.size, height, width, shape[2]), dtype.numpy)
    for y, a in zip(out, x.items):
        y[:a.shape[0], :a.shape[1]] = a
    return out
