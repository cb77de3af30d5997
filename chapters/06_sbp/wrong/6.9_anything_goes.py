# tables.refused
def _gather_part_ref(params, indices, axis, first, size):
    out = np.zeros(params.shape[:axis] + indices.shape + params.shape[axis + 1:], params.dtype)
    for at in np.ndindex(*indices.shape):
        if first <= indices[at] < first + params.shape[axis]:
            before = (slice(None),) * axis
            out[(*before, *at)] = params[(*before, indices[at] - first)]
    return out
