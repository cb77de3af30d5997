# The three roles of convolution as kernels. The including file defines `convolve` and `room`.
cdef int forward(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    return convolve(call, FORWARD, team, tag)


cdef int input_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    return convolve(call, INPUT_GRAD, team, tag)


cdef int weight_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    return convolve(call, WEIGHT_GRAD, team, tag)


cdef int64_t forward_room(const fe_call *call, int nt) noexcept nogil:
    return room(call, FORWARD, nt)


cdef int64_t input_grad_room(const fe_call *call, int nt) noexcept nogil:
    return room(call, INPUT_GRAD, nt)


cdef int64_t weight_grad_room(const fe_call *call, int nt) noexcept nogil:
    return room(call, WEIGHT_GRAD, nt)


cdef dict roles(str name):
    """Return the table rows of the convolution `name` and its gradients."""
    return {name: of_reals(<void *>forward[float], <void *>forward[double], <void *>forward_room),
            name + "_input_grad": of_reals(<void *>input_grad[float], <void *>input_grad[double],
                                           <void *>input_grad_room),
            name + "_weight_grad": of_reals(<void *>weight_grad[float], <void *>weight_grad[double],
                                            <void *>weight_grad_room)}


def bind(size_t sgemm, size_t dgemm):
    """Give this module OpenBLAS's two functions (see _kernels/__init__.py)."""
    global fe_sgemm, fe_dgemm
    fe_sgemm = <fe_sgemm_t>sgemm
    fe_dgemm = <fe_dgemm_t>dgemm
