# cython: language_level=3
"""Optimizer updates, in place, for all parameters of a model in one call.

Arguments: lr (1,), step (1,) int64, then for each parameter its group: weight, gradient, and what the rule remembers
about it (see ops/update.py). There are no outputs: the inputs are changed where they lie. One pass over memory does
everything: scaling the gradient, l1 and l2 regularization, weight decay, the rule. Threads share the elements of all
parameters laid end to end, so a model with one big matrix and fifty small vectors is balanced as well.

LARS and LAMB scale the rate of a parameter by norms: a first pass leaves the sums of squares of each block of BLOCK
elements in scratch, the threads meet, and the second pass adds up the blocks of a parameter in order. So the result
does not depend on the number of threads.

ints: [bias correction]. reals: [scale, beta1, beta2, epsilon], then for each parameter its weight decay, l1 and l2.
(rmsprop: beta1 is the decay rate; lars: beta1 is the momentum, beta2 the coefficient.)
"""
from libc.math cimport pow, sqrt, sqrtf
from libc.stdint cimport int64_t
from flowedu._kernels.abi cimport *

cdef enum:
    SGD, MOMENTUM, RMSPROP, CENTERED, ADAM
    LARS_NORMS               # the first pass of LARS; the second is MOMENTUM at another rate
    LAMB_NORMS, LAMB         # the two passes of LAMB
    CHUNK = 256
    BLOCK = 2048

cdef struct Rule:            # one parameter's coefficients
    double lr                # of the update; adam's bias correction and the ratio of norms are in it
    double decay             # lr * weight decay
    double scale, l1, l2, beta1, beta2, epsilon
    double c1, c2            # lamb's bias correction
    double w_square, g_square    # sums of a block


cdef inline int arrays(int kind) noexcept nogil:
    """How many arrays of a parameter's size a group has."""
    return 2 if kind == SGD else 3 if kind in (MOMENTUM, RMSPROP, LARS_NORMS) else 4


cdef inline real gradient(real w, real g, real scale, real l1, real l2) noexcept nogil:
    return scale * g + l1 * (<real>(w > 0) - <real>(w < 0)) + l2 * w


cdef inline real root(real x) noexcept nogil:
    if real is float:
        return sqrtf(x)
    else:
        return sqrt(x)


cdef void update(int kind, real **p, int64_t n, Rule *rule) noexcept nogil:
    """n elements of one group; p: where its arrays start."""
    cdef real lr = <real>rule.lr, decay = <real>rule.decay, scale = <real>rule.scale, l1 = <real>rule.l1
    cdef real l2 = <real>rule.l2, b1 = <real>rule.beta1, b2 = <real>rule.beta2, eps = <real>rule.epsilon, x, a, c
    cdef real r1 = <real>(1.0 - rule.beta1), r2 = <real>(1.0 - rule.beta2), c1 = <real>rule.c1, c2 = <real>rule.c2
    cdef double p2 = 0, q2 = 0
    cdef real *w = p[0]
    cdef real *g = p[1]
    cdef real *m = p[2]
    cdef real *v = p[3]
    cdef int64_t i
    if kind == SGD:
        for i in range(n):
            w[i] -= lr * gradient(w[i], g[i], scale, l1, l2) + decay * w[i]
    elif kind == MOMENTUM:
        for i in range(n):
            a = b1 * m[i] - lr * gradient(w[i], g[i], scale, l1, l2)
            m[i] = a
            w[i] += a - decay * w[i]
    elif kind == RMSPROP:
        for i in range(n):
            x = gradient(w[i], g[i], scale, l1, l2)
            a = b1 * m[i] + r1 * x * x
            m[i] = a
            w[i] -= lr * (x / root(a + eps)) + decay * w[i]
    elif kind == CENTERED:
        for i in range(n):
            x = gradient(w[i], g[i], scale, l1, l2)
            a = b1 * m[i] + r1 * x * x
            c = b1 * v[i] + r1 * x
            m[i] = a
            v[i] = c
            a = a - c * c
            w[i] -= lr * (x / root((a if a > 0 else 0) + eps)) + decay * w[i]     # rounding may take it below 0
    elif kind == ADAM:
        for i in range(n):
            x = gradient(w[i], g[i], scale, l1, l2)
            a = b1 * m[i] + r1 * x
            c = b2 * v[i] + r2 * x * x
            m[i] = a
            v[i] = c
            w[i] -= lr * (a / (root(c) + eps)) + decay * w[i]
    elif kind == LARS_NORMS:
        for i in range(n):
            x = gradient(w[i], g[i], scale, l1, l2)
            p2 += <double>w[i] * w[i]
            q2 += <double>x * x
    elif kind == LAMB_NORMS:
        for i in range(n):
            x = gradient(w[i], g[i], scale, l1, l2)
            m[i] = b1 * m[i] + r1 * x
            v[i] = b2 * v[i] + r2 * x * x
            x = c1 * m[i] / (root(c2 * v[i]) + eps)
            p2 += <double>w[i] * w[i]
            q2 += <double>x * x
    else:
        for i in range(n):
            w[i] -= lr * (c1 * m[i] / (root(c2 * v[i]) + eps)) + decay * w[i]
    rule.w_square += p2
    rule.g_square += q2


cdef bint flat(const fe_view *v) noexcept nogil:
    cdef int64_t step = 1
    cdef int d
    for d in range(v.ndim - 1, -1, -1):
        if v.shape[d] != 1 and v.stride[d] != step:
            return False
        step *= v.shape[d]
    return True


cdef int64_t offset(const fe_view *v, int64_t i) noexcept nogil:
    """Where element i, counted in row-major order, lies."""
    cdef int64_t off = 0
    cdef int d
    for d in range(v.ndim - 1, -1, -1):
        off += i % v.shape[d] * v.stride[d]
        i //= v.shape[d]
    return off


cdef void part(int kind, const fe_view *group, int64_t lo, int64_t hi, Rule *rule, real *tag) noexcept nogil:
    """Elements [lo, hi) of a group. Strided arrays pass through a small buffer, a piece of a row at a time."""
    cdef real buffer[4 * CHUNK]
    cdef real *p[4]
    cdef real *at[4]
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


cdef double number(const fe_view *v) noexcept nogil:
    return (<float *>v.data)[0] if v.dtype == FE_F32 else (<double *>v.data)[0]


cdef void set_number(const fe_view *v, double x) noexcept nogil:
    if v.dtype == FE_F32:
        (<float *>v.data)[0] = <float>x
    else:
        (<double *>v.data)[0] = x


cdef void ratio(const double *sums, int64_t blocks, bint lars, double decay, Rule *rule) noexcept nogil:
    """Scale a parameter's rate by its norms, from the sums of its blocks."""
    cdef double w = 0, g = 0
    cdef int64_t i
    for i in range(blocks):
        w += sums[2 * i]
        g += sums[2 * i + 1]
    w, g = sqrt(w), sqrt(g)
    if w > 0 and g > 0:
        rule.lr *= rule.beta2 * w / (rule.epsilon + g + decay * w) if lars else w / g


cdef void sweep(int kind, int size, fe_call *call, const fe_team *team, bint blocked) noexcept nogil:
    """One pass over all parameters, whose groups have `size` members. blocked: threads share whole blocks, whose sums
    are in scratch: a pass of norms writes them, the other reads them."""
    cdef int k
    cdef bint norms = kind == LARS_NORMS or kind == LAMB_NORMS
    cdef const fe_view *group
    cdef const double *own
    cdef double *sums = <double *>call.work
    cdef Rule rule
    cdef int64_t unit = BLOCK if blocked else 1, total = 0, lo, hi, first = 0, n, i, end, stop
    cdef double lr = number(&call.args[0]), t = <double>(fe_index(&call.args[1], 0) + 1)
    rule.scale, rule.beta1, rule.beta2, rule.epsilon = call.reals[0], call.reals[1], call.reals[2], call.reals[3]
    rule.c1 = rule.c2 = rule.w_square = rule.g_square = 0
    if call.ints[0]:
        lr = lr * sqrt(1.0 - pow(rule.beta2, t)) / (1.0 - pow(rule.beta1, t))
    for k in range((call.nin - 2) // size):
        total += (fe_numel(&call.args[2 + k * size]) + unit - 1) // unit * unit
    fe_split(total, BLOCK if blocked else 64, team, &lo, &hi)
    for k in range((call.nin - 2) // size):
        group, own = &call.args[2 + k * size], call.reals + 4 + 3 * k
        n = fe_numel(group)
        if lo < first + n and hi > first:
            rule.lr, rule.l1, rule.l2 = lr, own[1], own[2]
            if size == 6:
                rule.c1, rule.c2 = 1 / (1 - number(&group[4])), 1 / (1 - number(&group[5]))
            if blocked and not norms:
                ratio(sums + first // BLOCK * 2, (n + BLOCK - 1) // BLOCK, kind == MOMENTUM, own[0], &rule)
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


cdef int64_t norms_work(const fe_call *call, int size) noexcept nogil:
    """Scratch: two sums for each block of each parameter."""
    cdef int64_t blocks = 0
    cdef int i
    for i in range((call.nin - 2) // size):
        blocks += (fe_numel(&call.args[2 + i * size]) + BLOCK - 1) // BLOCK
    return 16 * blocks


cdef int sgd_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(SGD, 2, call, team, False)
    return FE_OK


cdef int momentum_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(MOMENTUM, 3, call, team, False)
    return FE_OK


cdef int adam_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(ADAM, 4, call, team, False)
    return FE_OK


cdef int rmsprop_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(RMSPROP, 3, call, team, False)
    return FE_OK


cdef int rmsprop_centered_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(CENTERED, 4, call, team, False)
    return FE_OK


cdef int lars_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(LARS_NORMS, 3, call, team, True)
    fe_wait(team)
    sweep(MOMENTUM, 3, call, team, True)
    return FE_OK


cdef int64_t lars_work(const fe_call *call, int nt) noexcept nogil:
    return norms_work(call, 3)


cdef int lamb_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef int i
    cdef const fe_view *group
    sweep(LAMB_NORMS, 6, call, team, True)
    fe_wait(team)
    sweep(LAMB, 6, call, team, True)
    fe_wait(team)                        # beta1_t and beta2_t have been read by all
    if team.tid == 0:
        for i in range((call.nin - 2) // 6):
            group = &call.args[2 + 6 * i]
            set_number(&group[4], number(&group[4]) * call.reals[1])
            set_number(&group[5], number(&group[5]) * call.reals[2])
    return FE_OK


cdef int64_t lamb_work(const fe_call *call, int nt) noexcept nogil:
    return norms_work(call, 6)


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}; the key is lr's dtype, the
    parameters' is looked up."""
    kernels = {"sgd_update": (<size_t><void *>sgd_update, 0),
               "momentum_update": (<size_t><void *>momentum_update, 0),
               "adam_update": (<size_t><void *>adam_update, 0),
               "rmsprop_update": (<size_t><void *>rmsprop_update, 0),
               "rmsprop_centered_update": (<size_t><void *>rmsprop_centered_update, 0),
               "lars_update": (<size_t><void *>lars_update, <size_t><void *>lars_work),
               "lamb_update": (<size_t><void *>lamb_update, <size_t><void *>lamb_work)}
    return {name: {FE_F32: entry, FE_F64: entry} for name, entry in kernels.items()}
