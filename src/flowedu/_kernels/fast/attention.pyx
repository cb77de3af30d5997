# cython: language_level=3
"""attention and its gradient.

    q (..., L, E), k (..., S, E), v (..., S, D), mask -> y (..., L, D), lse (..., L)

    scores = q k' * scale, -inf where the mask is not 0, and in later positions if causal
    y = softmax(scores) v        lse = log(sum(exp(scores)))        both 0 (or NaN) in fully masked rows

ints: [causal, nan]; reals: [scale]. The inputs may be strided.

Only one block of the scores is stored at a time: one tile of queries by KEYS keys, which stays in the L1
cache. Its rows are keys, so both products read it without a copy. The softmax continues from block to block
(Milakov and Gimelshein, 2018, "Online normalizer calculation for softmax"; Dao et al., 2022,
"FlashAttention"): y is scaled for the largest score so far, and rescaled when a larger one comes. Fully
masked blocks are skipped.

Backward recomputes the weights from q, k and lse. With delta = sum(dy * y) - dlse for every query,

    dweights = dy v'               dscores = weights * (dweights - delta)
    dq = scale * dscores k         dk = scale * dscores' q                   dv = weights' dy

In the forward pass threads split the tiles of all heads. The backward pass accumulates dk and dv, so threads
split the heads. Results therefore do not depend on the number of threads.
"""
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int8_t, int64_t, uint8_t
from libc.string cimport memset
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.matrix cimport *
from flowedu._kernels.core.table cimport *
from flowedu._kernels.fast.attention_blocks cimport *
from flowedu._kernels.fast.product_packed cimport *

cdef extern from "attention_tile.h" nogil:
    void fe_weights_f(int, int64_t, float *, float *, float *, float *) noexcept
    void fe_weights_d(int, int64_t, double *, double *, double *, double *) noexcept
    void fe_scale_columns_f(int64_t, int64_t, const float *, float *) noexcept
    void fe_scale_columns_d(int64_t, int64_t, const double *, double *) noexcept
    float fe_log_sum_f(float, float) noexcept
    double fe_log_sum_d(double, double) noexcept
    void fe_weights_again_f(int64_t, int64_t, const float *, float *) noexcept
    void fe_weights_again_d(int64_t, int64_t, const double *, double *) noexcept
    void fe_dscores_f(int64_t, int64_t, const float *, const float *, const uint8_t *, float *) noexcept
    void fe_dscores_d(int64_t, int64_t, const double *, const double *, const uint8_t *, double *) noexcept


# ---- forward
cdef int64_t tile_elements(const Sizes *s) noexcept nogil:
    return s.w * (2 * s.e + s.d + KEYS + 4)


cdef int64_t room(const fe_call *call, int nt) noexcept nogil:
    cdef int64_t item = item_of(call)
    cdef Sizes s = sizes_of(&call.args[0], &call.args[1], &call.args[2], call.ints[0], item)
    return nt * (round64((s.keys * s.e + (s.blocks + 1) * KEYS * s.d
                          + tile_elements(&s)) * item) + round64(KEYS * s.w))


cdef inline void tile_forward(Part *p, real *q, int64_t row, real *y, real *lse, real nothing) noexcept nogil:
    """Compute the tile that begins with query `row`. q, y and lse point to that query."""
    cdef Sizes *s = &p.s
    cdef int64_t w = s.w, j, keys, i, rows = min(w, s.queries - row)
    cdef real *turned = <real *>p.tile
    cdef real *out = turned + 2 * w * s.e
    cdef real *scores = out + w * s.d
    cdef real *most = scores + w * KEYS
    cdef real *total = most + w
    cdef real *again = total + w
    cdef fe_block b = product(0, KEYS, w, w, True)
    cdef bint some, first = True
    queries_of(p, q, rows, turned + w * s.e, turned)
    memset(out, 0, w * s.d * sizeof(real))
    for i in range(w):
        most[i], total[i] = <real>-INFINITY, 0
    for j in range(s.blocks):
        keys = keys_of(s, row, rows, j)
        if keys <= 0:
            break
        if not score(p, row, rows, j, keys, turned, scores, &some):
            continue
        if real is float:
            fe_weights_f(s.nv, keys, scores, most, total, again)
            if not first:
                fe_scale_columns_f(s.d, w, again, out)
        else:
            fe_weights_d(s.nv, keys, scores, most, total, again)
            if not first:
                fe_scale_columns_d(s.d, w, again, out)
        first, b.steps = False, keys
        blocks(<real *>NULL, s.nv, &b, s.d, <real *>p.turned + j * KEYS * s.d, scores, out)
    for i in range(w):
        again[i] = nothing if total[i] == 0 else 1 / total[i]
    for i in range(rows):
        if total[i] == 0:
            lse[i] = nothing
        elif real is float:
            lse[i] = fe_log_sum_f(most[i], total[i])
        else:
            lse[i] = fe_log_sum_d(most[i], total[i])
    if real is float:
        fe_scale_columns_f(s.d, w, again, out)
    else:
        fe_scale_columns_d(s.d, w, again, out)
    transpose(out, w, s.d, rows, y, s.d, False)


cdef int attention(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef const fe_view *y = &call.args[4]
    cdef const fe_view *mask = &call.args[3]
    cdef Part p = part_of(call, 0, mask)
    cdef Sizes *s = &p.s
    cdef int64_t own = room(call, 1), lo, hi, item, head = -1, i
    cdef real *mine = <real *>(call.work + team.tid * own)
    cdef real *lse = <real *>call.args[5].data
    cdef real *k
    fe_split(s.heads * s.tiles, 1, team, &lo, &hi)
    p.room_k, p.turned = <char *>mine, <char *>(mine + s.keys * s.e)
    p.room_v = <char *>(mine + s.keys * s.e + s.blocks * KEYS * s.d)
    p.tile = p.room_v + KEYS * s.d * sizeof(real)
    p.hidden = <uint8_t *>mine + own - round64(KEYS * s.w)
    for item in range(lo, hi):
        if item // s.tiles != head:
            head = item // s.tiles
            k = <real *>call.args[1].data + batch_offset(&call.args[1], y, head)
            p.keys = <char *>side_by_side(k, &p.k, s.keys, <real *>p.room_k, &p.key_step)
            turn(<real *>call.args[2].data + batch_offset(&call.args[2], y, head), &p.v, s.blocks,
                 <real *>p.room_v, <real *>p.turned)
            if p.mask != NULL:
                p.mask = <const int8_t *>mask.data + mask_start(mask, &call.args[0], head, &p.mask_row,
                                                                &p.mask_key)
        i = item % s.tiles * s.w
        tile_forward(&p, <real *>call.args[0].data + batch_offset(&call.args[0], y, head) + i * p.q.rs, i,
                     <real *>y.data + (head * s.queries + i) * s.d, lse + head * s.queries + i,
                     <real>NAN if call.ints[1] else <real>0)
    return FE_OK


# ---- backward
cdef inline int64_t panels(int64_t columns, int64_t item) noexcept nogil:
    """Round the number of columns up to whole vectors."""
    return up(columns, lanes(item)) * lanes(item)


cdef int64_t tile_elements_grad(const Sizes *s, int64_t item) noexcept nogil:
    return s.w * (3 * s.e + 2 * s.d + panels(s.e, item) + panels(s.d, item) + 2 * KEYS + 2)


cdef int64_t room_grad(const fe_call *call, int nt) noexcept nogil:
    cdef int64_t item = item_of(call)
    cdef Sizes s = sizes_of(&call.args[1], &call.args[2], &call.args[3], call.ints[0], item)
    return nt * (round64((s.keys * (s.e + s.d) + (s.blocks + 1) * KEYS * s.e
                          + tile_elements_grad(&s, item)) * item)
                 + round64(KEYS * s.w))


cdef inline void pack_rows(real *x, int64_t ld, int64_t rows, int64_t w, int64_t cols, real scale,
                           real *packed) noexcept nogil:
    """Pack x (rows, cols) * scale as the right side of a product, slab by slab, padded with zeros to w
    rows."""
    cdef Slabs sl = slabs_of(cols, sizeof(real))
    cdef int64_t i, r, c, m0, wide, n
    for i in range(sl.count):
        m0, wide = slab_start(sl, i) * sl.lanes, (slab_start(sl, i + 1) - slab_start(sl, i)) * sl.lanes
        n = min(wide, cols - m0)
        memset(packed + m0 * w, 0, w * wide * sizeof(real))
        for r in range(rows):
            for c in range(n):
                packed[m0 * w + r * wide + c] = x[r * ld + m0 + c] * scale


cdef inline void add_product(const Part *p, int64_t keys, const real *x, int64_t cols, const real *packed,
                             real *y) noexcept nogil:
    """Add x (keys, w) times the packed matrix to y (keys, cols)."""
    cdef Slabs sl = slabs_of(cols, sizeof(real))
    cdef int64_t i, m0, vectors
    cdef fe_block b = product(p.s.w, p.s.w, cols, 0, True)
    for i in range(sl.count):
        m0, vectors = slab_start(sl, i) * sl.lanes, slab_start(sl, i + 1) - slab_start(sl, i)
        b.cols = min(vectors * sl.lanes, cols - m0)
        blocks(<real *>NULL, <int>vectors, &b, keys, x, packed + m0 * p.s.w, y + m0)


cdef inline void block_backward(Part *p, int64_t j, int64_t keys, bint some, real *weights, real *dweights,
                                real *dy_turned, const real *terms) noexcept nogil:
    """Turn the scores in `weights` into weights, and dweights into the scores' gradients. terms: lse,
    delta."""
    cdef int64_t w = p.s.w
    cdef fe_block b = product(p.s.d, p.value_step, w, w, False)
    blocks(<real *>NULL, p.s.nv, &b, keys, <real *>p.values + j * KEYS * p.value_step, dy_turned, dweights)
    if real is float:
        fe_weights_again_f(keys, w, terms, weights)
        fe_dscores_f(keys, w, weights, terms + w, p.hidden if some else NULL, dweights)
    else:
        fe_weights_again_d(keys, w, terms, weights)
        fe_dscores_d(keys, w, weights, terms + w, p.hidden if some else NULL, dweights)


cdef inline void tile_backward(Part *p, Matrix *dy, fe_call *call, int64_t head, int64_t row,
                               real *tag) noexcept nogil:
    """Compute dq of the tile that begins with query `row`, and add its part to dk and dv of the head."""
    cdef Sizes *s = &p.s
    cdef int64_t w = s.w, j, keys, i, ld, rows = min(w, s.queries - row), at = head * s.queries + row
    cdef real *turned = <real *>p.tile
    cdef real *room = turned + w * s.e
    cdef real *dy_turned = room + w * (s.e + s.d)
    cdef real *dq = dy_turned + w * s.d
    cdef real *packed = dq + w * s.e
    cdef real *dy_packed = packed + w * panels(s.e, sizeof(real))
    cdef real *weights = dy_packed + w * panels(s.d, sizeof(real))
    cdef real *dweights = weights + w * KEYS
    cdef real *terms = dweights + w * KEYS
    cdef real *x = <real *>call.args[1].data + batch_offset(&call.args[1], &call.args[7], head) + row * p.q.rs
    cdef real *lse = <real *>call.args[5].data + at
    cdef real *delta = <real *>call.args[6].data + at
    cdef real *dk = <real *>call.args[8].data + head * s.keys * s.e
    cdef real *dv = <real *>call.args[9].data + head * s.keys * s.d
    cdef fe_block b = product(0, KEYS, w, w, True)
    cdef bint some
    queries_of(p, x, rows, room, turned)
    x = side_by_side(x, &p.q, rows, room, &ld)
    pack_rows(x, ld, rows, w, s.e, <real>p.scale, packed)
    x = <real *>call.args[0].data + batch_offset(&call.args[0], &call.args[7], head) + row * dy.rs
    x = side_by_side(x, dy, rows, room + w * s.e, &ld)
    memset(dy_turned, 0, w * s.d * sizeof(real))
    transpose(x, ld, rows, s.d, dy_turned, w, True)
    pack_rows(x, ld, rows, w, s.d, <real>1, dy_packed)
    memset(dq, 0, w * s.e * sizeof(real))
    for i in range(w):                             # queries past the end have weight 0
        terms[i], terms[w + i] = (lse[i], delta[i]) if i < rows else (<real>INFINITY, <real>0)
    for j in range(s.blocks):
        keys = keys_of(s, row, rows, j)
        if keys <= 0:
            break
        if not score(p, row, rows, j, keys, turned, weights, &some):
            continue
        block_backward(p, j, keys, some, weights, dweights, dy_turned, terms)
        add_product(p, keys, weights, s.d, dy_packed, dv + j * KEYS * s.d)
        add_product(p, keys, dweights, s.e, packed, dk + j * KEYS * s.e)
        b.steps = keys
        blocks(<real *>NULL, s.nv, &b, s.e, <real *>p.turned + j * KEYS * s.e, dweights, dq)
    for i in range(w * s.e):
        dq[i] *= <real>p.scale
    transpose(dq, w, s.e, rows, <real *>call.args[7].data + at * s.e, s.e, False)


cdef int attention_grad(fe_call *call, const fe_team *team, real *tag) noexcept nogil:
    cdef const fe_view *q = &call.args[1]
    cdef const fe_view *mask = &call.args[4]
    cdef Part p = part_of(call, 1, mask)
    cdef Matrix dy = operand(&call.args[0], False)
    cdef Sizes *s = &p.s
    cdef int64_t own = room_grad(call, 1), lo, hi, head, i
    cdef real *mine = <real *>(call.work + team.tid * own)
    cdef real *k
    p.room_k, p.room_v = <char *>mine, <char *>(mine + s.keys * s.e)
    p.turned = <char *>(mine + s.keys * (s.e + s.d))
    p.tile = p.turned + (s.blocks + 1) * KEYS * s.e * sizeof(real)
    p.hidden = <uint8_t *>mine + own - round64(KEYS * s.w)
    fe_split(s.heads, 1, team, &lo, &hi)
    memset(<real *>call.args[8].data + lo * s.keys * s.e, 0, (hi - lo) * s.keys * s.e * sizeof(real))
    memset(<real *>call.args[9].data + lo * s.keys * s.d, 0, (hi - lo) * s.keys * s.d * sizeof(real))
    for head in range(lo, hi):
        k = <real *>call.args[2].data + batch_offset(&call.args[2], &call.args[7], head)
        turn(k, &p.k, s.blocks, <real *>(p.tile - KEYS * s.e * sizeof(real)), <real *>p.turned)
        p.keys = <char *>side_by_side(k, &p.k, s.keys, <real *>p.room_k, &p.key_step)
        k = <real *>call.args[3].data + batch_offset(&call.args[3], &call.args[7], head)
        p.values = <char *>side_by_side(k, &p.v, s.keys, <real *>p.room_v, &p.value_step)
        if p.mask != NULL:
            p.mask = <const int8_t *>mask.data + mask_start(mask, q, head, &p.mask_row, &p.mask_key)
        for i in range(s.tiles):
            tile_backward(&p, &dy, call, head, i * s.w, <real *>NULL)
    return FE_OK


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return {"attention": of_reals(<void *>attention[float], <void *>attention[double], <void *>room),
            "attention_grad": of_reals(<void *>attention_grad[float], <void *>attention_grad[double],
                                       <void *>room_grad)}
