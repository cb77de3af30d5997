# What the kernels of optim.pyx and optim_step.pyx share: one pass over all parameters, whose elements, laid end to end,
# the threads split evenly. The including module says what happens to the elements:
#
#     int arrays(int kind)                              how many arrays of a parameter's size a group has
#     void update(int kind, real **p, int64_t n, Rule *rule)         n elements of one group; p: where its arrays start
#     void begin(int kind, const fe_call *call, double t, Rule *rule)    a call's coefficients; t: the step's number, from 1
#     void each(int kind, const fe_view *group, double decay, Rule *rule)           a parameter's, after its ratio of norms
#
# A step's number below 0 says: change nothing this time.
#
# ints: flags. reals: [scale, then three numbers], then for each parameter its weight decay, l1 and l2.

cdef enum:
    CHUNK = 256
    BLOCK = 2048
    MAX_ARRAYS = 5

cdef struct Rule:            # one parameter's coefficients
    double lr                # of the update
    double decay             # lr * weight decay
    double scale, l1, l2, beta1, beta2, epsilon
    double c1, c2            # bias correction
    bint flag
    double w_norm, g_norm    # of a parameter, in the second pass of rules that need them
    double w_square, g_square    # sums of a block, in the first


cdef inline real gradient(real w, real g, real scale, real l1, real l2) noexcept nogil:
    return scale * g + l1 * (<real>(w > 0) - <real>(w < 0)) + l2 * w


cdef inline real root(real x) noexcept nogil:
    if real is float:
        return sqrtf(x)
    else:
        return sqrt(x)


cdef inline bint flat(const fe_view *v) noexcept nogil:
    cdef int64_t step = 1
    cdef int d
    for d in range(v.ndim - 1, -1, -1):
        if v.shape[d] != 1 and v.stride[d] != step:
            return False
        step *= v.shape[d]
    return True


cdef inline int64_t offset(const fe_view *v, int64_t i) noexcept nogil:
    """Where element i, counted in row-major order, lies."""
    cdef int64_t off = 0
    cdef int d
    for d in range(v.ndim - 1, -1, -1):
        off += i % v.shape[d] * v.stride[d]
        i //= v.shape[d]
    return off


cdef void part(int kind, const fe_view *group, int64_t lo, int64_t hi, Rule *rule, real *tag) noexcept nogil:
    """Elements [lo, hi) of a group. Strided arrays pass through a small buffer, a piece of a row at a time."""
    cdef real buffer[MAX_ARRAYS * CHUNK]
    cdef real *p[MAX_ARRAYS]
    cdef real *at[MAX_ARRAYS]
    cdef int64_t i = lo, j, n, step, last = group[0].ndim - 1
    cdef int k, size = arrays(kind)
    cdef bint all_flat = True
    for k in range(size):
        p[k] = <real *>group[k].data + lo
        all_flat = all_flat and flat(&group[k])
    if all_flat:
        update(kind, p, hi - lo, rule)
        return
    while i < hi:
        n = min(min(group[0].shape[last] - i % group[0].shape[last], hi - i), <int64_t>CHUNK)
        for k in range(size):
            step = group[k].stride[last]
            at[k] = p[k] = <real *>group[k].data + offset(&group[k], i)
            if step != 1:
                p[k] = buffer + k * CHUNK
                for j in range(n):
                    p[k][j] = at[k][j * step]
        update(kind, p, n, rule)
        for k in range(size):
            step = group[k].stride[last]
            if step != 1 and k != 1:
                for j in range(n):
                    at[k][j * step] = p[k][j]
        i += n


cdef inline double number(const fe_view *v) noexcept nogil:
    return (<float *>v.data)[0] if v.dtype == FE_F32 else (<double *>v.data)[0]


cdef void add_blocks(const double *sums, int64_t blocks, Rule *rule) noexcept nogil:
    """A parameter's norms, from the sums of its blocks."""
    cdef double w = 0, g = 0
    cdef int64_t i
    for i in range(blocks):
        w += sums[2 * i]
        g += sums[2 * i + 1]
    rule.w_norm, rule.g_norm = sqrt(w), sqrt(g)


cdef void sweep(int kind, int size, fe_call *call, const fe_team *team, bint blocked=False,
                bint norms=False) noexcept nogil:
    """One pass over all parameters, whose groups have `size` members. blocked: threads share whole blocks, whose sums
    are in scratch: the pass of `norms` writes them, the other reads them."""
    cdef int k
    cdef const fe_view *group
    cdef const double *own
    cdef double *sums = <double *>call.work
    cdef Rule rule
    cdef int64_t unit = BLOCK if blocked else 1, total = 0, lo, hi, first = 0, n, i, end, stop
    cdef double lr
    if fe_index(&call.args[1], 0) < 0:                    # this step is left out
        return
    rule.lr = number(&call.args[0])
    rule.scale, rule.beta1, rule.beta2, rule.epsilon = call.reals[0], call.reals[1], call.reals[2], call.reals[3]
    rule.c1 = rule.c2 = 1
    rule.w_square = rule.g_square = rule.w_norm = rule.g_norm = 0
    rule.flag = call.ints[0]
    begin(kind, call, <double>(fe_index(&call.args[1], 0) + 1), &rule)
    lr = rule.lr
    for k in range((call.nin - 2) // size):
        total += (fe_numel(&call.args[2 + k * size]) + unit - 1) // unit * unit
    fe_split(total, BLOCK if blocked else 64, team, &lo, &hi)
    for k in range((call.nin - 2) // size):
        group, own = &call.args[2 + k * size], call.reals + 4 + 3 * k
        n = fe_numel(group)
        if lo < first + n and hi > first:
            rule.lr, rule.l1, rule.l2 = lr, own[1], own[2]
            if blocked and not norms:
                add_blocks(sums + first // BLOCK * 2, (n + BLOCK - 1) // BLOCK, &rule)
            each(kind, group, own[0], &rule)
            rule.decay = rule.lr * own[0]
            i, stop = max(lo - first, 0), min(hi - first, n)
            while i < stop:
                end = min(stop, i + BLOCK) if norms else stop
                if group.dtype == FE_F32:
                    part[float](kind, group, i, end, &rule, NULL)
                else:
                    part[double](kind, group, i, end, &rule, NULL)
                if norms:
                    sums[(first + i) // BLOCK * 2], sums[(first + i) // BLOCK * 2 + 1] = rule.w_square, rule.g_square
                    rule.w_square = rule.g_square = 0
                i = end
        first += (n + unit - 1) // unit * unit


cdef inline int64_t norms_work(const fe_call *call, int size) noexcept nogil:
    """Scratch: two sums for each block of each parameter."""
    cdef int64_t blocks = 0
    cdef int i
    for i in range((call.nin - 2) // size):
        blocks += (fe_numel(&call.args[2 + i * size]) + BLOCK - 1) // BLOCK
    return 16 * blocks
