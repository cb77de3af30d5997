# tables.own_rows
def _gather_part_ref(params, indices, axis, first, size):
    wrong = indices[(indices < 0) | (indices >= size)]
    if wrong.size:
        raise OutOfRangeError("gather: an index is out of range", got=str(wrong.flat[0]))
    n = params.shape[axis]
    if not n:
        return np.zeros(params.shape[:axis] + indices.shape + params.shape[axis + 1:], params.dtype)
    return np.take(params, np.clip(indices - first, 0, n - 1), axis)
