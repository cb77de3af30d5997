# cython: language_level=3
"""The kernels lstm, gru, and rnn, and their gradients: all steps of one layer in one direction.

Threads split the rows of the batch. Rows are independent, so each thread runs all steps for its own rows, and
w, packed once, stays in its cache. A step is a small product, to which the contribution of the inputs is
added as it is stored, and one pass over the gates. Rows whose sequence has ended are skipped: their state
stays.

Forward kernels take (given, w, b, lengths, h0, ...), gradients (dy, w, lengths, dh_n, ...). ints: [reverse,
relu].
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.table cimport *
from flowedu._kernels.fast.conv_tiles cimport *
from flowedu._kernels.fast.product_packed cimport *

cdef extern from "recurrent_cells.h" nogil:
    void fe_lstm_f(int64_t, float *, float *, float *, float *) noexcept
    void fe_lstm_d(int64_t, double *, double *, double *, double *) noexcept
    void fe_lstm_grad_f(int64_t, float *, float *, float *, float *, float *, float *, float *) noexcept
    void fe_lstm_grad_d(int64_t, double *, double *, double *, double *, double *, double *,
                        double *) noexcept
    void fe_gru_f(int64_t, float *, float *, float *, float *) noexcept
    void fe_gru_d(int64_t, double *, double *, double *, double *) noexcept
    void fe_gru_grad_f(int64_t, float *, float *, float *, float *, float *, float *) noexcept
    void fe_gru_grad_d(int64_t, double *, double *, double *, double *, double *, double *) noexcept
    void fe_rnn_f(int64_t, float *, int) noexcept
    void fe_rnn_d(int64_t, double *, int) noexcept
    void fe_rnn_grad_f(int64_t, float *, float *, float *, float *, int) noexcept
    void fe_rnn_grad_d(int64_t, double *, double *, double *, double *, int) noexcept

cdef enum Kind:
    LSTM, GRU, RNN


cdef struct Layer:           # one call
    Kind kind
    bint reverse, relu
    int64_t steps, rows, hidden, columns
    const fe_view *lengths


cdef inline Layer layer_of(const fe_call *call, Kind kind, const fe_view *lengths) noexcept nogil:
    """Read the sizes: args[0] is (steps, rows, ...), args[1] the weight (columns, hidden)."""
    cdef Layer s
    s.kind, s.reverse, s.relu, s.lengths = kind, call.ints[0] != 0, call.ints[1] != 0, lengths
    s.steps, s.rows = call.args[0].shape[0], call.args[0].shape[1]
    s.columns, s.hidden = call.args[1].shape[0], call.args[1].shape[1]
    return s


cdef inline int64_t alike(const Layer *s, int64_t t, int64_t n, int64_t hi, bint *goes_on) noexcept nogil:
    """Return the end of the group of rows, from n on, that are all active at step t (or all ended)."""
    goes_on[0] = fe_index(s.lengths, n) > t
    n += 1
    while n < hi and (fe_index(s.lengths, n) > t) == goes_on[0]:
        n += 1
    return n


cdef inline real *at(const fe_view *v, int64_t t, int64_t n, real *tag) noexcept nogil:
    """Return row n of step t of an array (steps, rows, numbers)."""
    return <real *>v.data + (t * v.shape[1] + n) * v.shape[2]


cdef inline real *row(const fe_view *v, int64_t n, real *tag) noexcept nogil:
    return <real *>v.data + n * v.shape[1]


cdef inline void times(real *x, real *mat, real *shift, real *plus, real *y, Packed p) noexcept nogil:
    """Compute y = x mat + shift + plus in this thread alone. p holds the sizes."""
    cdef fe_team alone = fe_team(0, 1, NULL)
    p.x, p.mat, p.y, p.plus = <char *>x, <char *>mat, <char *>y, <char *>plus
    p.f = Finish(NULL, <char *>shift, 0, 0)
    packed_product(&p, &alone, x)


# ---- forward
cdef inline void forward(const fe_call *call, Layer s, const fe_team *team, real *tag) noexcept nogil:
    cdef const fe_view *given = &call.args[0]
    cdef const fe_view *h0 = &call.args[4]
    cdef const fe_view *y = &call.args[call.nin]
    cdef const fe_view *last = &call.args[call.nargs - 1]        # gates; an RNN has none
    cdef const fe_view *gates = y if s.kind == RNN else last
    cdef const fe_view *cells = &call.args[call.nin + 3]
    cdef real *b = <real *>call.args[2].data
    cdef real *mat = <real *>call.work
    cdef real *h
    cdef int64_t lo, hi, k, t, n, end, i, H = s.hidden, more = 1 if s.reverse else 0
    cdef bint goes_on
    cdef Conv m = pointwise(s.rows, H, s.columns)
    if not call.kept:
        pack_product(&m, team, <real *>call.args[1].data, call.work,
                     call.work + matrix_bytes(&m, sizeof(real)))
    fe_split(s.rows, 1, team, &lo, &hi)
    if lo == hi:
        return
    if s.kind == LSTM:
        memcpy(at(cells, s.steps if s.reverse else 0, lo, tag), row(&call.args[5], lo, tag),
               (hi - lo) * H * sizeof(real))
    for k in range(s.steps):
        t, n = s.steps - 1 - k if s.reverse else k, lo
        while n < hi:
            end = alike(&s, t, n, hi, &goes_on)
            h = row(h0, n, tag) if k == 0 else at(y, t + 1 if s.reverse else t - 1, n, tag)
            if goes_on:
                times(h, mat, b, NULL if s.kind == GRU else at(given, t, n, tag), at(gates, t, n, tag),
                      Packed(end - n, s.columns, H, H, gates.shape[2], NULL, NULL, NULL,
                             Finish(NULL, NULL, 0, 0), NULL))
            else:
                memcpy(at(y, t, n, tag), h, (end - n) * H * sizeof(real))
                if s.kind == LSTM:
                    memcpy(at(cells, t + 1 - more, n, tag), at(cells, t + more, n, tag),
                           (end - n) * H * sizeof(real))
                if s.kind != RNN:
                    memset(at(gates, t, n, tag), 0, (end - n) * 4 * H * sizeof(real))
            for i in range(n, end if goes_on else n):
                if s.kind == LSTM:
                    lstm_cell(H, at(gates, t, i, tag), at(cells, t + more, i, tag),
                              at(cells, t + 1 - more, i, tag), at(y, t, i, tag))
                elif s.kind == GRU:
                    gru_cell(H, at(given, t, i, tag), at(gates, t, i, tag), h + (i - n) * H, at(y, t, i, tag))
                else:
                    rnn_cell(H, at(y, t, i, tag), s.relu)
            n = end
    t = 0 if s.reverse else s.steps - 1
    memcpy(row(&call.args[call.nin + 1], lo, tag), row(h0, lo, tag) if s.steps == 0 else at(y, t, lo, tag),
           (hi - lo) * H * sizeof(real))
    if s.kind == LSTM:
        memcpy(row(&call.args[call.nin + 2], lo, tag), at(cells, 0 if s.reverse else s.steps, lo, tag),
               (hi - lo) * H * sizeof(real))


cdef inline void lstm_cell(int64_t n, real *gates, real *before, real *cell, real *y) noexcept nogil:
    if real is float:
        fe_lstm_f(n, gates, before, cell, y)
    else:
        fe_lstm_d(n, gates, before, cell, y)


cdef inline void gru_cell(int64_t n, real *given, real *gates, real *before, real *y) noexcept nogil:
    if real is float:
        fe_gru_f(n, given, gates, before, y)
    else:
        fe_gru_d(n, given, gates, before, y)


cdef inline void rnn_cell(int64_t n, real *y, bint relu) noexcept nogil:
    if real is float:
        fe_rnn_f(n, y, relu)
    else:
        fe_rnn_d(n, y, relu)


cdef int lstm(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """given, w, b, lengths, h0, c0 -> y, h_n, c_n, cells (steps + 1, rows, hidden), gates"""
    forward(call, layer_of(call, LSTM, &call.args[3]), team, tag)
    return FE_OK


cdef int gru(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """given, w, b, lengths, h0 -> y, h_n, gates"""
    forward(call, layer_of(call, GRU, &call.args[3]), team, tag)
    return FE_OK


cdef int rnn(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """given, w, b, lengths, h0 -> y, h_n"""
    forward(call, layer_of(call, RNN, &call.args[3]), team, tag)
    return FE_OK


cdef int64_t forward_work(const fe_call *call, int nt) noexcept nogil:
    cdef Conv m = pointwise(call.args[0].shape[1], call.args[1].shape[1], call.args[1].shape[0])
    return matrix_bytes(&m, item_of(call)) + nt * pack_room(&m)


# ---- backward
cdef inline void pack_turned(const Conv *m, const fe_team *team, real *w, real *mat) noexcept nogil:
    """Pack the right side w (depth, cols), which is not transposed, in the order of `pack_product`."""
    cdef Slabs sl = slabs_of(m.o, sizeof(real))
    cdef int64_t lo, hi, s, k, m0, ld, n
    fe_split(m.c, 1, team, &lo, &hi)
    for s in range(sl.count):
        m0 = slab_start(sl, s) * sl.lanes
        ld = slab_start(sl, s + 1) * sl.lanes - m0
        n = min(ld, m.o - m0)
        for k in range(lo, hi):
            memcpy(mat + m0 * m.c + k * ld, w + k * m.o + m0, n * sizeof(real))
            memset(mat + m0 * m.c + k * ld + n, 0, (ld - n) * sizeof(real))
    fe_wait(team)


cdef inline void backward(const fe_call *call, Layer s, const fe_view *kept, const fe_view *dh0,
                          const fe_team *team, real *tag) noexcept nogil:
    """Run the steps backward. dh0, followed by dc0, holds the gradients of the states. kept: the argument
    after dh_n."""
    cdef const fe_view *dy = &call.args[0]
    cdef const fe_view *dgiven = &call.args[call.nin]
    cdef const fe_view *dmixed = &call.args[call.nin + 1] if s.kind == GRU else dgiven
    cdef real *mat = <real *>call.work
    cdef real *zeros
    cdef real *dh
    cdef real *h
    cdef int64_t lo, hi, k, t, n, end, i, j, H = s.hidden, more = 1 if s.reverse else 0
    cdef bint goes_on
    cdef Conv m = pointwise(s.rows, s.columns, H)
    pack_turned(&m, team, <real *>call.args[1].data, mat)
    zeros = <real *>(call.work + matrix_bytes(&m, sizeof(real)) + team.tid * round64(H * sizeof(real)))
    memset(zeros, 0, H * sizeof(real))
    fe_split(s.rows, 1, team, &lo, &hi)
    if lo == hi:
        return
    memcpy(row(dh0, lo, tag), row(&call.args[3], lo, tag), (hi - lo) * H * sizeof(real))
    if s.kind == LSTM:
        memcpy(row(dh0 + 1, lo, tag), row(kept, lo, tag), (hi - lo) * H * sizeof(real))
    for k in range(s.steps):
        t, n = k if s.reverse else s.steps - 1 - k, lo
        while n < hi:
            end = alike(&s, t, n, hi, &goes_on)
            for i in range(n, end):
                dh = row(dh0, i, tag)
                if not goes_on:
                    h = at(dy, t, i, tag)
                    for j in range(H):
                        dh[j] += h[j]
                elif s.kind == LSTM:
                    lstm_cell_grad(H, at(kept + 2, t, i, tag), at(kept + 1, t + more, i, tag),
                                   at(kept + 1, t + 1 - more, i, tag), at(dy, t, i, tag), dh,
                                   row(dh0 + 1, i, tag), at(dgiven, t, i, tag))
                elif s.kind == GRU:
                    h = row(kept, i, tag) if k == s.steps - 1 else at(kept + 1, t + 2 * more - 1, i, tag)
                    gru_cell_grad(H, at(kept + 2, t, i, tag), h, at(dy, t, i, tag), dh, at(dgiven, t, i, tag),
                                  at(dmixed, t, i, tag))
                else:
                    rnn_cell_grad(H, at(kept, t, i, tag), at(dy, t, i, tag), dh, at(dgiven, t, i, tag),
                                  s.relu)
            if goes_on:
                dh = row(dh0, n, tag)
                times(at(dmixed, t, n, tag), mat, zeros, dh if s.kind == GRU else NULL, dh,
                      Packed(end - n, H, s.columns, s.columns, H, NULL, NULL, NULL, Finish(NULL, NULL, 0, 0),
                             NULL))
            else:
                memset(at(dgiven, t, n, tag), 0, (end - n) * s.columns * sizeof(real))
                if s.kind == GRU:
                    memset(at(dmixed, t, n, tag), 0, (end - n) * s.columns * sizeof(real))
            n = end


cdef inline void lstm_cell_grad(int64_t n, real *gates, real *before, real *cell, real *dy, real *dh,
                                real *dc, real *dgates) noexcept nogil:
    if real is float:
        fe_lstm_grad_f(n, gates, before, cell, dy, dh, dc, dgates)
    else:
        fe_lstm_grad_d(n, gates, before, cell, dy, dh, dc, dgates)


cdef inline void gru_cell_grad(int64_t n, real *gates, real *before, real *dy, real *dh, real *dgiven,
                               real *dmixed) noexcept nogil:
    if real is float:
        fe_gru_grad_f(n, gates, before, dy, dh, dgiven, dmixed)
    else:
        fe_gru_grad_d(n, gates, before, dy, dh, dgiven, dmixed)


cdef inline void rnn_cell_grad(int64_t n, real *y, real *dy, real *dh, real *dgiven,
                               bint relu) noexcept nogil:
    if real is float:
        fe_rnn_grad_f(n, y, dy, dh, dgiven, relu)
    else:
        fe_rnn_grad_d(n, y, dy, dh, dgiven, relu)


cdef int lstm_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """dy, w, lengths, dh_n, dc_n, cells, gates -> dgiven, dh0, dc0"""
    backward(call, layer_of(call, LSTM, &call.args[2]), &call.args[4], &call.args[call.nin + 1], team, tag)
    return FE_OK


cdef int gru_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """dy, w, lengths, dh_n, h0, y, gates -> dgiven, dmixed, dh0"""
    backward(call, layer_of(call, GRU, &call.args[2]), &call.args[4], &call.args[call.nin + 2], team, tag)
    return FE_OK


cdef int rnn_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    """dy, w, lengths, dh_n, y -> dgiven, dh0"""
    backward(call, layer_of(call, RNN, &call.args[2]), &call.args[4], &call.args[call.nin + 1], team, tag)
    return FE_OK


cdef int64_t backward_work(const fe_call *call, int nt) noexcept nogil:
    cdef Conv m = pointwise(call.args[0].shape[1], call.args[1].shape[0], call.args[1].shape[1])
    return matrix_bytes(&m, item_of(call)) + nt * round64(call.args[1].shape[1] * item_of(call))


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size)}}"""
    return {"lstm": of_reals(<void *>lstm[float], <void *>lstm[double], <void *>forward_work),
            "gru": of_reals(<void *>gru[float], <void *>gru[double], <void *>forward_work),
            "rnn": of_reals(<void *>rnn[float], <void *>rnn[double], <void *>forward_work),
            "lstm_grad": of_reals(<void *>lstm_grad[float], <void *>lstm_grad[double], <void *>backward_work),
            "gru_grad": of_reals(<void *>gru_grad[float], <void *>gru_grad[double], <void *>backward_work),
            "rnn_grad": of_reals(<void *>rnn_grad[float], <void *>rnn_grad[double], <void *>backward_work)}
