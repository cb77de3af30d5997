# cython: language_level=3
"""ctc_loss and its gradient: the forward-backward algorithm in log space (Graves et al., 2006).

The states of a sequence are its labels with a blank before, between and after them. alpha[t, s]: log
probability of all paths that are in state s after the first t steps; alpha[0] is 0 for state 0. A step stays,
advances by one state, or by two if that skips a blank between different labels. beta[t, s]: log probability
of all paths from there to the end.

Sums are in double. Threads split the sequences. A length or label out of range ends the call with
FE_BAD_INDEX.
ints: [blank, zero_infinity].
"""
from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *

cdef struct Batch:           # inputs of both kernels
    const fe_view *x         # log probabilities (time, batch, classes)
    const fe_view *labels    # (batch, longest)
    const fe_view *steps     # (batch,) lengths in time
    const fe_view *counts    # (batch,) lengths of the labels
    int64_t time, batch, classes, longest, blank, states

cdef struct Sequence:        # one sequence of the batch
    int64_t n, steps, states


cdef Batch batch_of(const fe_view *args, int64_t blank) noexcept nogil:
    cdef Batch b
    b.x, b.labels, b.steps, b.counts = &args[0], &args[1], &args[2], &args[3]
    b.time, b.batch, b.classes = args[0].shape[0], args[0].shape[1], args[0].shape[2]
    b.longest, b.blank = args[1].shape[1], blank
    b.states = 2 * b.longest + 1
    return b


cdef inline int64_t label(const Batch *b, const Sequence *q, int64_t s) noexcept nogil:
    """Return the class that state s emits."""
    return fe_index(b.labels, q.n * b.longest + s // 2) if s % 2 else b.blank


cdef inline bint skips(const Batch *b, const Sequence *q, int64_t s) noexcept nogil:
    """Return True if state s may be entered from s - 2."""
    return s % 2 and s > 1 and label(b, q, s) != label(b, q, s - 2)


cdef int sequence(const Batch *b, int64_t n, Sequence *q, int64_t *bad) noexcept nogil:
    cdef int64_t i, k = fe_index(b.counts, n)
    q.n, q.steps, q.states = n, fe_index(b.steps, n), 2 * k + 1
    if k < 0 or k > b.longest:
        bad[0] = k
        return FE_BAD_INDEX
    if q.steps < 0 or q.steps > b.time:
        bad[0] = q.steps
        return FE_BAD_INDEX
    for i in range(q.states // 2):
        k = fe_index(b.labels, n * b.longest + i)
        if k < 0 or k >= b.classes or k == b.blank:
            bad[0] = k
            return FE_BAD_INDEX
    return FE_OK


cdef inline double add3(double a, double b, double c) noexcept nogil:
    """Compute log(exp(a) + exp(b) + exp(c))."""
    cdef double m = max(a, max(b, c))
    if m == -INFINITY:
        return m
    return m + log(exp(a - m) + exp(b - m) + exp(c - m))


cdef inline double at(const Batch *b, const Sequence *q, int64_t t, int64_t s, const real *x) noexcept nogil:
    return x[(t * b.batch + q.n) * b.classes + label(b, q, s)]


cdef void forward(const Batch *b, const Sequence *q, const real *x, int64_t t, const double *old,
                  double *new) noexcept nogil:
    """Compute alpha[t + 1] from alpha[t]."""
    cdef int64_t s
    for s in range(q.states):
        new[s] = at(b, q, t, s, x) + add3(old[s], old[s - 1] if s else -INFINITY,
                                          old[s - 2] if skips(b, q, s) else -INFINITY)


cdef void backward(const Batch *b, const Sequence *q, const real *x, int64_t t, const double *old,
                   double *new) noexcept nogil:
    """Compute beta[t] from beta[t + 1]."""
    cdef int64_t s
    for s in range(q.states):
        new[s] = add3(old[s] + at(b, q, t, s, x),
                      old[s + 1] + at(b, q, t, s + 1, x) if s + 1 < q.states else -INFINITY,
                      old[s + 2] + at(b, q, t, s + 2, x) if s + 2 < q.states and skips(b, q, s + 2)
                      else -INFINITY)


cdef inline void start(const Sequence *q, double *alpha) noexcept nogil:
    cdef int64_t s
    for s in range(q.states):
        alpha[s] = -INFINITY
    alpha[0] = 0


cdef inline double ends(const Sequence *q, const double *alpha) noexcept nogil:
    """Return the log probability of the sequence, which ends in the last label or in the blank after it."""
    return add3(alpha[q.states - 1], alpha[q.states - 2] if q.states > 1 else -INFINITY, -INFINITY)


cdef int64_t loss_bytes(const Batch *b) noexcept nogil:
    return (2 * b.states * 8 + 63) // 64 * 64


cdef int64_t ctc_loss_work(const fe_call *call, int nt) noexcept nogil:
    cdef Batch b = batch_of(call.args, 0)
    return nt * loss_bytes(&b)


cdef int ctc_loss(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Compute the losses. Inputs log_probs, targets, input_lengths, target_lengths."""
    cdef Batch b = batch_of(call.args, call.ints[0])
    cdef Sequence q
    cdef const real *x = <const real *>b.x.data
    cdef real *y = <real *>call.args[4].data
    cdef double *old = <double *>(call.work + team.tid * loss_bytes(&b))
    cdef double *new = old + b.states
    cdef int64_t n, t, lo, hi
    fe_split(b.batch, 1, team, &lo, &hi)
    for n in range(lo, hi):
        if sequence(&b, n, &q, &call.detail) != FE_OK:
            return FE_BAD_INDEX
        start(&q, old)
        for t in range(q.steps):
            forward(&b, &q, x, t, old, new)
            old, new = new, old
        y[n] = <real>-ends(&q, old)
        if call.ints[1] and y[n] == INFINITY:
            y[n] = 0
    return FE_OK


cdef int64_t grad_bytes(const Batch *b) noexcept nogil:
    return ((b.time + 3) * b.states * 8 + 63) // 64 * 64


cdef int64_t ctc_loss_grad_work(const fe_call *call, int nt) noexcept nogil:
    cdef Batch b = batch_of(call.args + 1, 0)
    return nt * grad_bytes(&b)


cdef int ctc_loss_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """Compute dlog_probs: -dloss times the probability, given the labels, of emitting that class at that
    time; zero if no path emits the labels. Inputs: dloss and the inputs of ctc_loss."""
    cdef Batch b = batch_of(call.args + 1, call.ints[0])
    cdef Sequence q
    cdef const real *dloss = <const real *>call.args[0].data
    cdef const real *x = <const real *>b.x.data
    cdef real *dx = <real *>call.args[5].data
    cdef double *alpha = <double *>(call.work + team.tid * grad_bytes(&b))
    cdef double *old = alpha + (b.time + 1) * b.states
    cdef double *new = old + b.states
    cdef double total
    cdef int64_t n, t, s, k, lo, hi
    fe_split(b.batch, 1, team, &lo, &hi)
    for n in range(lo, hi):
        for t in range(b.time):
            for k in range(b.classes):
                dx[(t * b.batch + n) * b.classes + k] = 0
        if sequence(&b, n, &q, &call.detail) != FE_OK:
            return FE_BAD_INDEX
        start(&q, alpha)
        for t in range(q.steps):
            forward(&b, &q, x, t, alpha + t * b.states, alpha + (t + 1) * b.states)
        total = ends(&q, alpha + q.steps * b.states)
        if total == -INFINITY:
            continue
        for s in range(q.states):
            old[s] = 0 if s >= q.states - 2 else -INFINITY
        for t in range(q.steps - 1, -1, -1):
            for s in range(q.states):
                dx[(t * b.batch + n) * b.classes + label(&b, &q, s)] -= <real>(
                    dloss[n] * exp(alpha[(t + 1) * b.states + s] + old[s] - total))
            backward(&b, &q, x, t, old, new)
            old, new = new, old
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size)}}; the key is log_probs."""
    work, grad_work = <size_t><void *>ctc_loss_work, <size_t><void *>ctc_loss_grad_work
    return {"ctc_loss": {FE_F32: (<size_t><void *>ctc_loss[float], work),
                         FE_F64: (<size_t><void *>ctc_loss[double], work)},
            "ctc_loss_grad": {FE_F32: (<size_t><void *>ctc_loss_grad[float], grad_work),
                              FE_F64: (<size_t><void *>ctc_loss_grad[double], grad_work)}}
