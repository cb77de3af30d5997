# The kernels copy, concat, and slice_grad, which call `move` of the file that includes this one.

cdef int copy(fe_call *call, const fe_team *team, item *tag) noexcept nogil:
    move(&call.args[0], &call.args[1], team, tag)
    return FE_OK


cdef int concat(fe_call *call, const fe_team *team, item *tag) noexcept nogil:
    """Copy each input into its band of the output. ints: [axis]."""
    cdef fe_view band = call.args[call.nargs - 1]
    cdef int axis = <int>call.ints[0], i
    for i in range(call.nin):
        band.shape[axis] = call.args[i].shape[axis]
        move(&call.args[i], &band, team, tag)
        band.data += band.shape[axis] * band.stride[axis] * <int64_t>sizeof(item)
    return FE_OK


cdef int slice_grad(fe_call *call, const fe_team *team, item *tag) noexcept nogil:
    """Write zeros, then copy dy to the slice. ints: the start of each axis, then each step."""
    cdef fe_view band = call.args[1]
    cdef item *d = <item *>band.data
    cdef int64_t lo, hi, i
    cdef int axis
    if fe_numel(&call.args[0]) != fe_numel(&band):
        fe_split(fe_numel(&band), 64, team, &lo, &hi)
        for i in range(lo, hi):
            d[i] = 0
        fe_wait(team)
    for axis in range(band.ndim):
        band.data += call.ints[axis] * band.stride[axis] * <int64_t>sizeof(item)
        band.stride[axis] *= call.ints[band.ndim + axis]
        band.shape[axis] = call.args[0].shape[axis]
    move(&call.args[0], &band, team, tag)
    return FE_OK


def table():
    """Return {kernel name: {dtype code of the input: (kernel address, 0)}}."""
    by_size = {1: (<size_t><void *>copy[uint8_t],
                   <size_t><void *>concat[uint8_t], <size_t><void *>slice_grad[uint8_t]),
               2: (<size_t><void *>copy[uint16_t], <size_t><void *>concat[uint16_t],
                   <size_t><void *>slice_grad[uint16_t]),
               4: (<size_t><void *>copy[uint32_t], <size_t><void *>concat[uint32_t],
                   <size_t><void *>slice_grad[uint32_t]),
               8: (<size_t><void *>copy[uint64_t], <size_t><void *>concat[uint64_t],
                   <size_t><void *>slice_grad[uint64_t])}
    return {name: {code: (by_size[fe_item[code]][i], 0) for code in range(FE_NDTYPE)}
           for i, name in enumerate(("copy", "concat", "slice_grad"))}
