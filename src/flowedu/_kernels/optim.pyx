# cython: language_level=3
"""Optimizer updates, in place, for all parameters of a model in one call.

Arguments: lr (1,), step (1,) int64, then for each parameter its group: weight, gradient, and what the rule remembers
about it (see ops/update.py). There are no outputs: the inputs are changed where they lie. One pass over memory does
everything: scaling the gradient, l1 and l2 regularization, weight decay, the rule. Threads share the elements of all
parameters laid end to end (optim_sweep.pxi), so a model with one big matrix and fifty small vectors is balanced as well.

LARS and LAMB scale the rate of a parameter by norms: a first pass leaves the sums of squares of each block of BLOCK
elements in scratch, the threads meet, and the second pass adds up the blocks of a parameter in order. So the result
does not depend on the number of threads.

ints: [bias correction]. reals: [scale, beta1, beta2, epsilon], then for each parameter its weight decay, l1 and l2.
(rmsprop: beta1 is the decay rate; lars: beta1 is the momentum, beta2 the coefficient.)

Compiled without fused multiply-add (setup.py): where two arrays are close the compiler takes a loop without vectors, and
would fuse otherwise there, so the last bit of a weight would depend on where it lies.
"""
from libc.math cimport pow, sqrt, sqrtf
from libc.stdint cimport int64_t
from flowedu._kernels.abi cimport *

cdef enum:
    SGD, MOMENTUM, RMSPROP, CENTERED, ADAM
    LARS_NORMS               # the first pass of LARS; the second is MOMENTUM at another rate
    LARS
    LAMB_NORMS, LAMB         # the two passes of LAMB

include "optim_sweep.pxi"


cdef inline int arrays(int kind) noexcept nogil:
    return 2 if kind == SGD else 3 if kind in (MOMENTUM, RMSPROP, LARS_NORMS, LARS) else 4


cdef void begin(int kind, const fe_call *call, double t, Rule *rule) noexcept nogil:
    if kind == ADAM and rule.flag:
        rule.lr *= sqrt(1.0 - pow(rule.beta2, t)) / (1.0 - pow(rule.beta1, t))


cdef void each(int kind, const fe_view *group, double decay, Rule *rule) noexcept nogil:
    if kind == LAMB_NORMS or kind == LAMB:
        rule.c1, rule.c2 = 1 / (1 - number(&group[4])), 1 / (1 - number(&group[5]))
    if (kind == LARS or kind == LAMB) and rule.w_norm > 0 and rule.g_norm > 0:
        rule.lr *= rule.w_norm / rule.g_norm if kind == LAMB else \
            rule.beta2 * rule.w_norm / (rule.epsilon + rule.g_norm + decay * rule.w_norm)


cdef void update(int kind, real **p, int64_t n, Rule *rule) noexcept nogil:
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
    elif kind == MOMENTUM or kind == LARS:
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


cdef void set_number(const fe_view *v, double x) noexcept nogil:
    if v.dtype == FE_F32:
        (<float *>v.data)[0] = <float>x
    else:
        (<double *>v.data)[0] = x


cdef int sgd_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(SGD, 2, call, team)
    return FE_OK


cdef int momentum_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(MOMENTUM, 3, call, team)
    return FE_OK


cdef int adam_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(ADAM, 4, call, team)
    return FE_OK


cdef int rmsprop_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(RMSPROP, 3, call, team)
    return FE_OK


cdef int rmsprop_centered_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(CENTERED, 4, call, team)
    return FE_OK


cdef int lars_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(LARS_NORMS, 3, call, team, True, True)
    fe_wait(team)
    sweep(LARS, 3, call, team, True)
    return FE_OK


cdef int64_t lars_work(const fe_call *call, int nt) noexcept nogil:
    return norms_work(call, 3)


cdef int lamb_update(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef int i
    cdef const fe_view *group
    sweep(LAMB_NORMS, 6, call, team, True, True)
    fe_wait(team)
    sweep(LAMB, 6, call, team, True)
    fe_wait(team)                        # beta1_t and beta2_t have been read by all
    if team.tid == 0 and fe_index(&call.args[1], 0) >= 0:
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
