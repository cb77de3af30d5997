# The kernels sum, prod, max, and min, which call `reduce` of the file that includes this one.

cdef int carried(fe_call *call, const fe_team *team, num *tag, kind *op) noexcept nogil:
    """Reduce floats in double, integers in int64."""
    if num is float or num is double:
        return reduce(call, team, tag, <double *>NULL, op)
    else:
        return reduce(call, team, tag, <int64_t *>NULL, op)


cdef int sum_(fe_call *call, const fe_team *team, num *tag) noexcept nogil:
    return carried(call, team, tag, <Sum *>NULL)


cdef int prod_(fe_call *call, const fe_team *team, num *tag) noexcept nogil:
    return carried(call, team, tag, <Prod *>NULL)


cdef int max_(fe_call *call, const fe_team *team, num *tag) noexcept nogil:
    return carried(call, team, tag, <Max *>NULL)


cdef int min_(fe_call *call, const fe_team *team, num *tag) noexcept nogil:
    return carried(call, team, tag, <Min *>NULL)


cdef dict reductions(void *work):
    """Return the table rows of the four kernels. work: their scratch size function, or NULL."""
    return {"sum": of_numbers(<void *>sum_[float], <void *>sum_[double],
                              <void *>sum_[int32_t], <void *>sum_[int64_t], work),
            "prod": of_numbers(<void *>prod_[float], <void *>prod_[double],
                               <void *>prod_[int32_t], <void *>prod_[int64_t], work),
            "max": of_numbers(<void *>max_[float], <void *>max_[double],
                              <void *>max_[int32_t], <void *>max_[int64_t], work),
            "min": of_numbers(<void *>min_[float], <void *>min_[double],
                              <void *>min_[int32_t], <void *>min_[int64_t], work)}
