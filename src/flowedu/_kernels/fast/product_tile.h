/* The register block of a matrix product with a packed right side: R rows of x times NV vectors of columns, and what is done to
 * a result before it is stored, while it is in registers.
 *
 *   y[r][:] = clip(shift + sum_k x[r][k] * mat[k][:], low, high) + plus[r][:]      or, where nothing is clipped,
 *   y[r][:] = sum_k x[r][k] * mat[k][:] + shift + plus[r][:]                       to the bit as ops in a row have it
 *
 * Neither x nor y is copied; `mat` holds NV vectors for every k, one after the other (conv_tiles.pxd, pack_weights). A sum may
 * be of parts that lie apart in x and in mat: the rows of a convolution's kernel. The blocks are as large as those of
 * conv_tile.h. The file includes itself once per element type.
 */
#ifndef REAL
#ifndef FLOWEDU_PRODUCT_TILE_H
#define FLOWEDU_PRODUCT_TILE_H
#include "clip_vector.h"
#include "conv_tile.h"

typedef struct {
    int64_t ldx, ldy, steps; /* elements between rows; length of the sums, or of their parts */
    int64_t parts, part_x, part_m; /* how many; elements from one to the next */
    int64_t cols;            /* of the block that are there: the rest is not stored */
    int add, last;           /* the sum goes on from y; it ends here, and is finished */
    const void *shift;       /* of the block's columns; NULL: none */
    const void *plus;        /* rows that lie like y's; NULL: none */
    int clip;                /* whether results are clipped */
    double low, high;
} fe_block;

#define REAL float
#define F(name) name##_f
#define LANES (FE_VBYTES / 4)
#include "product_tile.h"
#undef REAL
#undef F
#undef LANES
#define REAL double
#define F(name) name##_d
#define LANES (FE_VBYTES / 8)
#include "product_tile.h"
#undef REAL
#undef F
#undef LANES
#endif
#else

#define VEC F(vec)

/* The first n numbers at p; the others are 0. */
static inline VEC F(some)(const REAL *p, int64_t n) {
    VEC v = {0};
    if (n >= LANES) return *(const VEC *)p;
    if (n > 0) memcpy(&v, p, n * sizeof(REAL));
    return v;
}

static inline void F(put)(REAL *p, VEC v, int64_t n) {
    if (n >= LANES) *(VEC *)p = v;
    else if (n > 0) memcpy(p, &v, n * sizeof(REAL));
}

#define BLOCK(NV, R)                                                                                                 \
    static __attribute__((noinline)) void F(fe_block_##NV##_##R)(const fe_block *b, int rows, const REAL *x,         \
                                                                 const REAL *mat, REAL *y) {                         \
        const int whole = rows == R && b->cols >= NV * LANES;                                                        \
        VEC acc[R][NV];                                                                                              \
        const REAL *p[R];                                                                                            \
        FE_UNROLL for (int r = 0; r < R; r++) p[r] = x + (r < rows ? r : rows - 1) * b->ldx;                         \
        if (b->add) {                                                                                                \
            FE_UNROLL for (int r = 0; r < R; r++) FE_UNROLL for (int v = 0; v < NV; v++)                             \
                acc[r][v] = r < rows ? F(some)(y + r * b->ldy + v * LANES, b->cols - v * LANES) : (VEC){0};          \
        } else if (b->shift && b->clip) {                                                                            \
            FE_UNROLL for (int v = 0; v < NV; v++) {                                                                 \
                VEC shift = F(some)((const REAL *)b->shift + v * LANES, b->cols - v * LANES);                        \
                FE_UNROLL for (int r = 0; r < R; r++) acc[r][v] = shift;                                             \
            }                                                                                                        \
        } else {                                                                                                     \
            FE_UNROLL for (int r = 0; r < R; r++) FE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] = (VEC){0};       \
        }                                                                                                            \
        for (int64_t i = 0; i < b->parts; i++, mat += b->part_m) {                                                   \
            const REAL *at = mat;                                                                                    \
            for (int64_t k = 0; k < b->steps; k++, at += NV * LANES) {                                               \
                VEC m[NV];                                                                                           \
                FE_UNROLL for (int v = 0; v < NV; v++) m[v] = *(const VEC *)(at + v * LANES);                        \
                FE_UNROLL for (int r = 0; r < R; r++) {                                                              \
                    REAL s = p[r][k];                                                                                \
                    FE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] += s * m[v];                                    \
                }                                                                                                    \
            }                                                                                                        \
            FE_UNROLL for (int r = 0; r < R; r++) p[r] += b->part_x;                                                 \
        }                                                                                                            \
        if (b->last && b->clip) {                                                                                    \
            const VEC low = (VEC){0} + (REAL)b->low, high = (VEC){0} + (REAL)b->high;                                \
            FE_UNROLL for (int v = 0; v < NV; v++)                                                                   \
                FE_UNROLL for (int r = 0; r < R; r++) acc[r][v] = (VEC)F(FE_CLIP)(acc[r][v], low, high);             \
        }                                                                                                            \
        if (b->last && b->shift && !b->clip) {                                                                       \
            FE_UNROLL for (int v = 0; v < NV; v++) {                                                                 \
                VEC shift = F(some)((const REAL *)b->shift + v * LANES, b->cols - v * LANES);                        \
                FE_UNROLL for (int r = 0; r < R; r++) acc[r][v] += shift;                                            \
            }                                                                                                        \
        }                                                                                                            \
        if (b->last && b->plus) {                                                                                    \
            FE_UNROLL for (int v = 0; v < NV; v++)                                                                   \
                FE_UNROLL for (int r = 0; r < R; r++)                                                                \
                    if (r < rows)                                                                                    \
                        acc[r][v] += F(some)((const REAL *)b->plus + r * b->ldy + v * LANES, b->cols - v * LANES);   \
        }                                                                                                            \
        if (whole) {                                                                                                 \
            FE_UNROLL for (int r = 0; r < R; r++) FE_UNROLL for (int v = 0; v < NV; v++)                             \
                *(VEC *)(y + r * b->ldy + v * LANES) = acc[r][v];                                                    \
            return;                                                                                                  \
        }                                                                                                            \
        FE_UNROLL for (int r = 0; r < R; r++)                                                                        \
            if (r < rows) FE_UNROLL for (int v = 0; v < NV; v++)                                                     \
                F(put)(y + r * b->ldy + v * LANES, acc[r][v], b->cols - v * LANES);                                  \
    }
#if defined(__AVX512F__) || defined(__aarch64__)
BLOCK(1, 7) BLOCK(1, 14) BLOCK(2, 7) BLOCK(2, 14) BLOCK(3, 4) BLOCK(3, 7) BLOCK(4, 4) BLOCK(4, 7)
#define BLOCK_CASE(NV, HALF, ALL) (rows <= HALF ? F(fe_block_##NV##_##HALF) : F(fe_block_##NV##_##ALL))
#define BLOCK_CHOICE (nv == 1 ? BLOCK_CASE(1, 7, 14) : nv == 2 ? BLOCK_CASE(2, 7, 14) : nv == 3 ? BLOCK_CASE(3, 4, 7) \
                                                                                      : BLOCK_CASE(4, 4, 7))
#else
BLOCK(1, 5) BLOCK(1, 10) BLOCK(2, 3) BLOCK(2, 6)
#define BLOCK_CASE(NV, HALF, ALL) (rows <= HALF ? F(fe_block_##NV##_##HALF) : F(fe_block_##NV##_##ALL))
#define BLOCK_CHOICE (nv == 1 ? BLOCK_CASE(1, 5, 10) : BLOCK_CASE(2, 3, 6))
#endif
static inline void F(fe_product)(int nv, const fe_block *b, int rows, const REAL *x, const REAL *mat, REAL *y) {
    BLOCK_CHOICE(b, rows, x, mat, y);
}
#undef BLOCK
#undef BLOCK_CASE
#undef BLOCK_CHOICE
#undef VEC
#endif
