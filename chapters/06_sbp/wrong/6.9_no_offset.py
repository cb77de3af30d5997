# tables.own_rows
def _gather_part_ref(params, indices, axis, first, size):
    wrong = indices[(indices < 0) | (indices >= size)]
    if wrong.size:
        raise OutOfRangeError("gather: an index is out of range", got=str(wrong.flat[0]))
    here = indices < params.shape[axis]
    out = np.take(params, np.where(here, indices, 0), axis) if params.size else 0
    here = here.reshape((1,) * axis + indices.shape + (1,) * (params.ndim - axis - 1))
    return np.where(here, out, np.zeros(params.shape[:axis] + indices.shape + params.shape[axis + 1:],
                                        params.dtype))
