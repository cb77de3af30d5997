def _gather_part_ref(params, indices, axis, first, size):
    from flowedu.errors import OutOfRangeError
    bad = indices[(indices < 0) | (indices >= size)]
    if bad.size:
        raise OutOfRangeError("gather: an index is in no part", got=str(bad.flat[0]),
                              expected=f"0 to {size - 1}")
    rows = np.moveaxis(params, axis, 0)
    out = np.zeros((indices.size, *rows.shape[1:]), params.dtype)
    for to, i in enumerate(indices.ravel()):
        if first <= i < first + len(rows):
            out[to] = rows[i - first]
    out = out.reshape(indices.shape + rows.shape[1:])
    for _ in range(indices.ndim):
        out = np.moveaxis(out, 0, axis + indices.ndim - 1)
    return out
