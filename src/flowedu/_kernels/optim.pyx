# cython: language_level=3
"""Optimizer updates, in place, for all parameters of a model in one call.

Arguments: lr (1,), step (1,) int64, then for each parameter its group: weight, gradient, and what the rule remembers
about it (momentum: m; adam: m, v). There are no outputs: the inputs are changed where they lie. One pass over memory
does everything: scaling the gradient, l1 and l2 regularization, weight decay, the rule. Threads share the elements of
all parameters laid end to end, so a model with one big matrix and fifty small vectors is balanced as well.

ints: [bias correction]. reals: [scale, beta1, beta2, epsilon], then for each parameter its weight decay, l1 and l2.
"""
from libc.math cimport pow, sqrt, sqrtf
from libc.stdint cimport int64_t
from flowedu._kernels.abi cimport *

cdef enum:
    SGD = 1
    MOMENTUM = 2
    ADAM = 3                 # also how many arrays of a group change; the gradient makes one more
    CHUNK = 256

cdef struct Rule:            # one parameter's coefficients
    double lr                # of the update; adam's bias correction is in it
    double decay             # lr * weight decay
    double scale, l1, l2, beta1, beta2, epsilon


cdef inline real gradient(real w, real g, real scale, real l1, real l2) noexcept nogil:
    return scale * g + l1 * (<real>(w > 0) - <real>(w < 0)) + l2 * w


cdef inline real root(real x) noexcept nogil:
    if real is float:
        return sqrtf(x)
    else:
        return sqrt(x)


cdef void update(int kind, real **p, int64_t n, const Rule *rule) noexcept nogil:
    """n elements of one group; p: where its arrays start."""
    cdef real lr = <real>rule.lr, decay = <real>rule.decay, scale = <real>rule.scale, l1 = <real>rule.l1
    cdef real l2 = <real>rule.l2, b1 = <real>rule.beta1, b2 = <real>rule.beta2, eps = <real>rule.epsilon, x, a, c
    cdef real r1 = <real>(1.0 - rule.beta1), r2 = <real>(1.0 - rule.beta2)
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
    else:
        for i in range(n):
            x = gradient(w[i], g[i], scale, l1, l2)
            a = b1 * m[i] + r1 * x
            c = b2 * v[i] + r2 * x * x
            m[i] = a
            v[i] = c
            w[i] -= lr * (a / (root(c) + eps)) + decay * w[i]


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


cdef void part(int kind, const fe_view *group, int64_t lo, int64_t hi, const Rule *rule, real *tag) noexcept nogil:
    """Elements [lo, hi) of a group. Strided arrays pass through a small buffer, a piece of a row at a time."""
    cdef real buffer[4 * CHUNK]
    cdef real *p[4]
    cdef real *at[4]
    cdef int64_t i = lo, j, n, step, last = group[0].ndim - 1
    cdef int k
    cdef bint all_flat = True
    for k in range(kind + 1):
        p[k] = <real *>group[k].data + lo
        all_flat = all_flat and flat(&group[k])
    if all_flat:
        update(kind, p, hi - lo, rule)
        return
    while i < hi:
        n = min(min(group[0].shape[last] - i % group[0].shape[last], hi - i), <int64_t>CHUNK)
        for k in range(kind + 1):
            step = group[k].stride[last]
            at[k] = p[k] = <real *>group[k].data + offset(&group[k], i)
            if step != 1:
                p[k] = buffer + k * CHUNK
                for j in range(n):
                    p[k][j] = at[k][j * step]
        update(kind, p, n, rule)
        for k in range(kind + 1):
            step = group[k].stride[last]
            if step != 1 and k != 1:
                for j in range(n):
                    at[k][j * step] = p[k][j]
        i += n


cdef int run(int kind, fe_call *call, const fe_team *team) noexcept nogil:
    cdef int size = kind + 1, groups = (call.nin - 2) // size, k
    cdef const fe_view *group
    cdef const double *own
    cdef Rule rule
    cdef int64_t total = 0, lo, hi, first = 0, n
    cdef double lr = (<float *>call.args[0].data)[0] if call.args[0].dtype == FE_F32 else \
        (<double *>call.args[0].data)[0]
    cdef double t = <double>(fe_index(&call.args[1], 0) + 1)
    rule.scale, rule.beta1, rule.beta2, rule.epsilon = call.reals[0], call.reals[1], call.reals[2], call.reals[3]
    rule.lr = lr
    if call.ints[0]:
        rule.lr = lr * sqrt(1.0 - pow(rule.beta2, t)) / (1.0 - pow(rule.beta1, t))
    for k in range(groups):
        total += fe_numel(&call.args[2 + k * size])
    fe_split(total, 64, team, &lo, &hi)
    for k in range(groups):
        group, own = &call.args[2 + k * size], call.reals + 4 + 3 * k
        n = fe_numel(group)
        if lo < first + n and hi > first and n:
            rule.decay, rule.l1, rule.l2 = rule.lr * own[0], own[1], own[2]
            if group.dtype == FE_F32:
                part[float](kind, group, max(lo - first, 0), min(hi - first, n), &rule, NULL)
            else:
                part[double](kind, group, max(lo - first, 0), min(hi - first, n), &rule, NULL)
        first += n
    return FE_OK


cdef int sgd_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    return run(SGD, call, team)


cdef int momentum_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    return run(MOMENTUM, call, team)


cdef int adam_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    return run(ADAM, call, team)


def table():
    """{kernel name: {dtype code: (kernel address, 0)}}; the key is lr's dtype, the parameters' is looked up."""
    both = FE_F32, FE_F64
    return {"sgd_update": {code: (<size_t><void *>sgd_update, 0) for code in both},
            "momentum_update": {code: (<size_t><void *>momentum_update, 0) for code in both},
            "adam_update": {code: (<size_t><void *>adam_update, 0) for code in both}}
