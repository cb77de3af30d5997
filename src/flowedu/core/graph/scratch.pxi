# The views and the scratch size of a kernel call of a plan (part of executor.pyx).


cdef void fill_view(fe_view *v, place) except *:
    cdef int d
    v.ndim, v.dtype = len(place.spec.shape), place.spec.dtype.code
    for d in range(v.ndim):
        v.shape[d] = place.spec.shape[d]
        v.stride[d] = place.strides[d]
    v.data = NULL


def scratch_bytes(Entry entry, places, int threads=0) -> int:
    """Return the scratch bytes of the kernel of `entry`. threads: 0 for the current setting."""
    cdef fe_call call
    cdef fe_view *args
    cdef int i
    cdef int64_t need
    if entry.work == NULL:
        return 0
    args = <fe_view *>calloc(max(len(places), 1), sizeof(fe_view))
    if args == NULL:
        raise MemoryError
    for i, p in enumerate(places):
        fill_view(&args[i], p)
    memset(&call, 0, sizeof(call))
    call.args, call.nin, call.nargs = args, entry.nin, len(places)
    call.ints, call.reals, call.extra = entry.ints, entry.reals, entry.extra
    need = entry.work(&call, threads or get_num_threads())
    free(args)
    if need < 0:                                   # the size overflows int64
        raise out_of_memory(entry.op.name, "scratch", LARGEST)
    return need
