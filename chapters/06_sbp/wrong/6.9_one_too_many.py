# tables.own_rows
def _gather_part_ref(params, indices, axis, first, size):
    wrong = indices[(indices < 0) | (indices >= size)]
    if wrong.size:
        raise OutOfRangeError("gather: an index is out of range", got=str(wrong.flat[0]))
    n = params.shape[axis]
    out = np.zeros(params.shape[:axis] + indices.shape + params.shape[axis + 1:], params.dtype)
    for at in np.ndindex(*indices.shape):
        if first < indices[at] <= first + n - 1:
            before = (slice(None),) * axis
            out[(*before, *at)] = params[(*before, indices[at] - first)]
    return out
