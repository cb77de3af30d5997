# cython: language_level=3
"""The updates of flow.optim (ops/step.py), in place, for all parameters of a group in one call. Arguments as in optim.pyx.

ints: [nesterov, or bias correction]. reals: [scale, three numbers], then for each parameter its weight decay, l1 and l2.
The three numbers: beta, dampening, - (momentum); beta1, beta2, epsilon (Adam, AMSGrad, LAMB); lr_decay, -, epsilon (Adagrad);
rho, -, epsilon (Adadelta).

Compiled without fused multiply-add (setup.py): where two arrays are close the compiler takes a loop without vectors, and
would fuse otherwise there, so the last bit of a weight would depend on where it lies.
"""
from libc.math cimport pow, sqrt, sqrtf
from libc.stdint cimport int64_t
from flowedu._kernels.abi cimport *

cdef enum:
    MOMENTUM, NESTEROV, ADAM, AMSGRAD, ADAGRAD, ADADELTA
    LAMB_NORMS, LAMB         # the two passes of LAMB

include "optim_sweep.pxi"


cdef inline int arrays(int kind) noexcept nogil:
    return 3 if kind in (MOMENTUM, NESTEROV, ADAGRAD) else 5 if kind == AMSGRAD else 4


cdef void begin(int kind, const fe_call *call, double t, Rule *rule) noexcept nogil:
    if kind == ADAGRAD:
        rule.lr /= 1 + (t - 1) * rule.beta1
    elif kind in (ADAM, AMSGRAD, LAMB_NORMS, LAMB) and rule.flag:
        rule.c1, rule.c2 = 1 / (1 - pow(rule.beta1, t)), 1 / sqrt(1 - pow(rule.beta2, t))


cdef void each(int kind, const fe_view *group, double decay, Rule *rule) noexcept nogil:
    if kind == LAMB and rule.w_norm > 0 and rule.g_norm > 0:
        rule.lr *= rule.w_norm / rule.g_norm


cdef void update(int kind, real **p, int64_t n, Rule *rule) noexcept nogil:
    cdef real lr = <real>rule.lr, decay = <real>rule.decay, scale = <real>rule.scale, l1 = <real>rule.l1
    cdef real l2 = <real>rule.l2, b1 = <real>rule.beta1, b2 = <real>rule.beta2, eps = <real>rule.epsilon, x, a, c
    cdef real r1 = <real>(1.0 - rule.beta1), r2 = <real>(1.0 - rule.beta2), c1 = <real>rule.c1, c2 = <real>rule.c2
    cdef real rate = <real>(rule.lr * rule.c1)
    cdef double p2 = 0, q2 = 0
    cdef real *w = p[0]
    cdef real *g = p[1]
    cdef real *m = p[2]
    cdef real *v = p[3]
    cdef real *top
    cdef int64_t i
    if kind == MOMENTUM:
        for i in range(n):
            m[i] = b1 * m[i] + r2 * gradient(w[i], g[i], scale, l1, l2)
            w[i] -= lr * m[i] + decay * w[i]
    elif kind == NESTEROV:
        for i in range(n):
            x = gradient(w[i], g[i], scale, l1, l2)
            m[i] = b1 * m[i] + r2 * x
            w[i] -= lr * (x + b1 * m[i]) + decay * w[i]
    elif kind == ADAM:
        for i in range(n):
            x = gradient(w[i], g[i], scale, l1, l2)
            a = b1 * m[i] + r1 * x
            c = b2 * v[i] + r2 * x * x
            m[i] = a
            v[i] = c
            w[i] -= rate * (a / (root(c) * c2 + eps)) + decay * w[i]
    elif kind == AMSGRAD:
        top = p[4]
        for i in range(n):
            x = gradient(w[i], g[i], scale, l1, l2)
            a = b1 * m[i] + r1 * x
            c = b2 * v[i] + r2 * x * x
            m[i] = a
            v[i] = c
            c = top[i] if top[i] > c else c          # a NaN in c stays
            top[i] = c
            w[i] -= rate * (a / (root(c) * c2 + eps)) + decay * w[i]
    elif kind == ADAGRAD:
        for i in range(n):
            x = gradient(w[i], g[i], scale, l1, l2)
            m[i] += x * x
            w[i] -= lr * (x / (root(m[i]) + eps)) + decay * w[i]
    elif kind == ADADELTA:
        for i in range(n):
            x = gradient(w[i], g[i], scale, l1, l2)
            a = b1 * m[i] + r1 * x * x
            c = root(v[i] + eps) / root(a + eps) * x
            m[i] = a
            v[i] = b1 * v[i] + r1 * c * c
            w[i] -= lr * c + decay * w[i]
    elif kind == LAMB_NORMS:
        for i in range(n):
            x = gradient(w[i], g[i], scale, l1, l2)
            m[i] = b1 * m[i] + r1 * x
            v[i] = b2 * v[i] + r2 * x * x
            x = c1 * m[i] / (root(v[i]) * c2 + eps)
            p2 += <double>w[i] * w[i]
            q2 += <double>x * x
    else:
        for i in range(n):
            w[i] -= lr * (c1 * m[i] / (root(v[i]) * c2 + eps)) + decay * w[i]
    rule.w_square += p2
    rule.g_square += q2


cdef int momentum_step(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(NESTEROV if call.ints[0] else MOMENTUM, 3, call, team)
    return FE_OK


cdef int adam_step(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(ADAM, 4, call, team)
    return FE_OK


cdef int amsgrad_step(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(AMSGRAD, 5, call, team)
    return FE_OK


cdef int adagrad_step(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(ADAGRAD, 3, call, team)
    return FE_OK


cdef int adadelta_step(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(ADADELTA, 4, call, team)
    return FE_OK


cdef int lamb_step(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    sweep(LAMB_NORMS, 4, call, team, True, True)
    fe_wait(team)
    sweep(LAMB, 4, call, team, True)
    return FE_OK


cdef int64_t lamb_work(const fe_call *call, int nt) noexcept nogil:
    return norms_work(call, 4)


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}; the key is lr's dtype."""
    kernels = {"momentum_step": (<size_t><void *>momentum_step, 0),
               "adam_step": (<size_t><void *>adam_step, 0),
               "amsgrad_step": (<size_t><void *>amsgrad_step, 0),
               "adagrad_step": (<size_t><void *>adagrad_step, 0),
               "adadelta_step": (<size_t><void *>adadelta_step, 0),
               "lamb_step": (<size_t><void *>lamb_step, <size_t><void *>lamb_work)}
    return {name: {FE_F32: entry, FE_F64: entry} for name, entry in kernels.items()}
