# The C contract of abi.h, for Cython. Declarations only: nothing here exists at run time.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef extern from "abi.h" nogil:
    enum: FE_MAX_DIM
    enum: FE_F32, FE_F64, FE_I32, FE_I64, FE_I8, FE_U8, FE_BOOL, FE_F16, FE_BF16, FE_I16, FE_NDTYPE
    const int fe_item[10]            # bytes of an element, by dtype code
    enum: FE_OK, FE_BAD_INDEX, FE_PYTHON

    ctypedef struct fe_view:
        char *data
        int32_t dtype
        int32_t ndim
        int64_t shape[8]
        int64_t stride[8]

    ctypedef struct fe_barrier:
        int arrived
        int phase

    ctypedef struct fe_team:
        int tid
        int nt
        fe_barrier *barrier

    ctypedef struct fe_call
    ctypedef int (*fe_kernel)(fe_call *, const fe_team *, void *) noexcept nogil
    ctypedef int64_t (*fe_work)(const fe_call *, int) noexcept nogil

    ctypedef struct fe_call:
        fe_kernel fn
        fe_view *args
        int32_t nin
        int32_t nargs
        const int64_t *ints
        const double *reals
        char *work
        const void *extra
        int64_t detail
        int32_t parallel
        int32_t node
        int32_t kept

    void fe_wait(const fe_team *) noexcept
    void fe_split(int64_t, int64_t, const fe_team *, int64_t *, int64_t *) noexcept
    int64_t fe_numel(const fe_view *) noexcept
    int64_t fe_place(const fe_view *, int64_t) noexcept
    int64_t fe_index(const fe_view *, int64_t) noexcept

ctypedef fused real:
    float
    double
