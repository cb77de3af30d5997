# Blocks of attention's scores: a tile of queries by KEYS keys, for forward and backward (attention.pyx).
from libc.stdint cimport int8_t, int64_t, uint8_t
from libc.string cimport memset
from flowedu._kernels.core.abi cimport *
from flowedu._kernels.core.matrix cimport *
from flowedu._kernels.fast.product_packed cimport *

cdef extern from "attention_tile.h" nogil:
    int64_t fe_mask_block(const int8_t *, int64_t, int64_t, int64_t, int64_t, int64_t, uint8_t *) noexcept
    void fe_hide_f(int64_t, const uint8_t *, float *) noexcept
    void fe_hide_d(int64_t, const uint8_t *, double *) noexcept

cdef enum:
    KEYS = 64                # keys per block; a multiple of the lanes of a vector

cdef struct Sizes:
    int64_t heads, queries, keys, e, d, w, tiles, blocks     # queries per tile w; tiles per head; key blocks
    int nv                   # vectors per tile
    bint causal


cdef inline Sizes sizes_of(const fe_view *q, const fe_view *k, const fe_view *v, bint causal,
                           int64_t item) noexcept nogil:
    cdef Sizes s
    cdef int i
    s.queries, s.e, s.keys, s.d = (q.shape[q.ndim - 2], q.shape[q.ndim - 1], k.shape[k.ndim - 2],
                                   v.shape[v.ndim - 1])
    s.heads, s.causal = 1, causal
    for i in range(q.ndim - 2):
        s.heads *= q.shape[i]
    s.nv = <int>max(<int64_t>1, min(<int64_t>FE_NV, up(s.queries, lanes(item))))
    s.w = s.nv * lanes(item)
    s.tiles, s.blocks = up(s.queries, s.w), up(s.keys, KEYS)
    return s


cdef inline int64_t mask_start(const fe_view *mask, const fe_view *q, int64_t head, int64_t *rows,
                               int64_t *keys) noexcept nogil:
    """Return the offset of a head's mask and set its row and key strides; its axes are the scores' last."""
    cdef int64_t off = 0
    cdef int d = q.ndim - 3, shift = q.ndim - mask.ndim
    rows[0] = keys[0] = 0
    if mask.ndim > 0 and mask.shape[mask.ndim - 1] != 1:
        keys[0] = mask.stride[mask.ndim - 1]
    if mask.ndim > 1 and mask.shape[mask.ndim - 2] != 1:
        rows[0] = mask.stride[mask.ndim - 2]
    while d >= 0 and d >= shift:
        if mask.shape[d - shift] != 1:
            off += head % q.shape[d] * mask.stride[d - shift]
        head //= q.shape[d]
        d -= 1
    return off


cdef struct Part:            # data and scratch of one thread
    Sizes s
    Matrix q, k, v
    const int8_t *mask       # the head's mask, or NULL for no mask
    int64_t mask_row, mask_key
    double scale
    uint8_t *hidden          # mask of one block: (KEYS, w)
    char *turned             # k or v of the head, each block transposed: (blocks, columns, KEYS)
    char *keys               # k of the head with contiguous columns
    char *values             # v of the head likewise, in the backward pass
    int64_t key_step, value_step
    char *room_k
    char *room_v
    char *tile               # buffers for one tile of queries


cdef inline real *side_by_side(real *x, Matrix *m, int64_t rows, real *room, int64_t *step) noexcept nogil:
    """Return x with contiguous columns: x itself, or a copy of its first rows in `room`. step: the row
    stride."""
    cdef int64_t i, j
    step[0] = m.rs if m.cs == 1 else m.cols
    if m.cs == 1:
        return x
    for i in range(rows):
        for j in range(m.cols):
            room[i * m.cols + j] = x[i * m.rs + j * m.cs]
    return room


cdef inline void turn(real *x, Matrix *m, int64_t blocks, real *room, real *turned) noexcept nogil:
    """Transpose each block of x (keys, columns), with zeros after the last key."""
    cdef int64_t j, n, ld
    cdef real *rows
    for j in range(blocks):
        n = min(<int64_t>KEYS, m.rows - j * KEYS)
        rows = side_by_side(x + j * KEYS * m.rs, m, n, room, &ld)
        if n < KEYS:
            memset(turned + j * KEYS * m.cols, 0, KEYS * m.cols * sizeof(real))
        transpose(rows, ld, n, m.cols, turned + j * KEYS * m.cols, KEYS, True)


cdef inline fe_block product(int64_t depth, int64_t ldx, int64_t ldy, int64_t cols, bint add) noexcept nogil:
    cdef fe_block b
    memset(&b, 0, sizeof(b))
    b.steps, b.ldx, b.ldy, b.cols, b.parts, b.add, b.last = depth, ldx, ldy, cols, 1, add, True
    return b


cdef inline int hidden_in(Part *p, int64_t row, int64_t rows, int64_t key, int64_t keys) noexcept nogil:
    """Return 0 if no score of the block is masked, 1 if some are (p.hidden is filled in), 2 if all are."""
    cdef int64_t w = p.s.w, count = 0, s
    if p.mask != NULL:
        count = fe_mask_block(p.mask + row * p.mask_row + key * p.mask_key, p.mask_row, p.mask_key, rows,
                              keys, w, p.hidden)
    if count == rows * keys:
        return 2
    if p.s.causal and key + keys - 1 > row:
        if count == 0:
            memset(p.hidden, 0, keys * w)
        for s in range(keys):
            if key + s > row:
                memset(p.hidden + s * w, 1, min(rows, key + s - row))
        return 1
    return count > 0


cdef inline int64_t keys_of(const Sizes *s, int64_t row, int64_t rows, int64_t j) noexcept nogil:
    """Return how many keys of block j the queries [row, row + rows) may see. If 0 or less, later blocks are
    masked too."""
    cdef int64_t end = min(s.keys, row + rows) if s.causal else s.keys
    return min(<int64_t>KEYS, end - j * KEYS)


cdef inline bint score(Part *p, int64_t row, int64_t rows, int64_t j, int64_t keys, real *queries,
                       real *scores, bint *some) noexcept nogil:
    """Compute block j of the scores, (keys, w), from `queries` (e, w). Return False if the block is fully
    masked."""
    cdef int hidden = hidden_in(p, row, rows, j * KEYS, keys)
    cdef fe_block b = product(p.s.e, p.key_step, p.s.w, p.s.w, False)
    if hidden == 2:
        return False
    blocks(scores, p.s.nv, &b, keys, <real *>p.keys + j * KEYS * p.key_step, queries, scores)
    some[0] = hidden == 1
    if hidden == 1:
        if real is float:
            fe_hide_f(keys * p.s.w, p.hidden, scores)
        else:
            fe_hide_d(keys * p.s.w, p.hidden, scores)
    return True


cdef inline void queries_of(Part *p, real *q, int64_t rows, real *room, real *turned) noexcept nogil:
    """Write `rows` scaled queries as columns, (e, w), with zeros after the last."""
    cdef int64_t i, ld, w = p.s.w
    cdef real scale = <real>p.scale
    cdef real *x = side_by_side(q, &p.q, rows, room, &ld)
    memset(turned, 0, p.s.e * w * sizeof(real))
    transpose(x, ld, rows, p.s.e, turned, w, True)
    for i in range(p.s.e * w):
        turned[i] *= scale


cdef inline Part part_of(const fe_call *call, int q, const fe_view *mask) noexcept nogil:
    """Read the inputs q, q + 1, q + 2 as q, k, v."""
    cdef Part p
    p.s = sizes_of(&call.args[q], &call.args[q + 1], &call.args[q + 2], call.ints[0], item_of(call))
    p.q, p.k, p.v = (operand(&call.args[q], False), operand(&call.args[q + 1], False),
                     operand(&call.args[q + 2], False))
    p.scale = call.reals[0]
    p.mask = NULL if fe_numel(mask) == 1 and mask.data[0] == 0 else <const int8_t *>mask.data
    return p
