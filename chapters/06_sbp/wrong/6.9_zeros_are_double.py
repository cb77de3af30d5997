# tables.own_rows
def _gather_part_ref(params, indices, axis, first, size):
    at, here = mine("gather", indices, first, params.shape[axis], size)
    if not here.any():                                           # the part may be empty too
        return np.zeros(params.shape[:axis] + indices.shape + params.shape[axis + 1:], params.dtype)
    here = here.reshape((1,) * axis + indices.shape + (1,) * (params.ndim - axis - 1))
    return np.where(here, np.take(params, at, axis), 0.0)
