/* The register block of a matrix product with a packed right side: R rows of x times NV vectors of columns.
 * Results are finished in registers before they are stored.
 *
 *   y[r][:] = clip(shift + sum_k x[r][k] * mat[k][:], low, high) + plus[r][:]      or, without clipping,
 *   y[r][:] = sum_k x[r][k] * mat[k][:] + shift + plus[r][:]                       bitwise as in separate ops
 *
 * Neither x nor y is copied; `mat` holds NV consecutive vectors for every k (conv_tiles.pxd, pack_weights). A
 * sum may consist of parts that are not adjacent in x and in mat: the rows of a convolution's kernel. The
 * blocks are as large as those in conv_tile.h. The file includes itself once per element type.
 */
#ifndef REAL
#ifndef FLOWEDU_PRODUCT_TILE_H
#define FLOWEDU_PRODUCT_TILE_H
#include "clip_vector.h"
#include "conv_tile.h"

typedef struct {
    int64_t ldx, ldy, steps; /* elements between rows; length of the sums, or of their parts */
    int64_t parts, part_x, part_m; /* number of parts; elements from one to the next */
    int64_t cols;            /* real columns of the block: others are not stored */
    int add, last;           /* add: continue the sum in y; last: finish the sum */
    const void *shift;       /* for the block's columns, or NULL */
    const void *plus;        /* rows with the layout of y, or NULL */
    int clip;                /* true if results are clipped */
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

/* Load the first n elements at p; the other lanes are 0. */
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

/* Only `rows` <= R rows are real: the others repeat a pointer and are not stored. whole: all rows and columns
 * are real; a compile-time constant where this function is inlined. */
#define BLOCK(NV, R)                                                                                                 \
    static inline __attribute__((always_inline)) void F(fe_part_##NV##_##R)(                                         \
            const fe_block *b, int whole, int rows, const REAL *x, const REAL *mat, const REAL *plus, REAL *y) {     \
        VEC acc[R][NV], shift[NV];                                                                                   \
        const REAL *p[R];                                                                                            \
        int64_t cols = whole ? NV * LANES : b->cols;                                                                 \
        FE_UNROLL for (int v = 0; v < NV; v++)                                                                       \
            shift[v] = b->shift ? F(some)((const REAL *)b->shift + v * LANES, cols - v * LANES) : (VEC){0};          \
        FE_UNROLL for (int r = 0; r < R; r++) {                                                                      \
            p[r] = x + (whole || r < rows ? r : rows - 1) * b->ldx;                                                  \
            FE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] = b->clip ? shift[v] : (VEC){0};                        \
        }                                                                                                            \
        if (b->add) {                                                                                                \
            FE_UNROLL for (int r = 0; r < R; r++) FE_UNROLL for (int v = 0; v < NV; v++)                             \
                if (whole || r < rows) acc[r][v] = F(some)(y + r * b->ldy + v * LANES, cols - v * LANES);            \
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
            FE_UNROLL for (int r = 0; r < R; r++) FE_UNROLL for (int v = 0; v < NV; v++)                             \
                acc[r][v] = (VEC)F(FE_CLIP)(acc[r][v], low, high);                                                   \
        } else if (b->last && b->shift) {                                                                            \
            FE_UNROLL for (int r = 0; r < R; r++) FE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] += shift[v];      \
        }                                                                                                            \
        if (b->last && plus) {                                                                                       \
            FE_UNROLL for (int r = 0; r < R; r++) FE_UNROLL for (int v = 0; v < NV; v++)                             \
                if (whole || r < rows) acc[r][v] += F(some)(plus + r * b->ldy + v * LANES, cols - v * LANES);        \
        }                                                                                                            \
        FE_UNROLL for (int r = 0; r < R; r++) FE_UNROLL for (int v = 0; v < NV; v++)                                 \
            if (whole || r < rows) F(put)(y + r * b->ldy + v * LANES, acc[r][v], cols - v * LANES);                  \
    }                                                                                                                \
    static __attribute__((noinline)) void F(fe_block_##NV##_##R)(const fe_block *b, int64_t rows, const REAL *x,     \
                                                                 const REAL *mat, const REAL *plus, REAL *y) {       \
        while (rows > 0) {                                                                                           \
            if (rows >= R && b->cols >= NV * LANES) F(fe_part_##NV##_##R)(b, 1, R, x, mat, plus, y);                 \
            else F(fe_part_##NV##_##R)(b, 0, rows < R ? (int)rows : R, x, mat, plus, y);                             \
            rows -= R, x += R * b->ldx, y += R * b->ldy;                                                             \
            if (plus) plus += R * b->ldy;                                                                            \
        }                                                                                                            \
    }
#if defined(__AVX512F__) || defined(__aarch64__)
BLOCK(1, 7) BLOCK(1, 14) BLOCK(2, 7) BLOCK(2, 14) BLOCK(3, 4) BLOCK(3, 7) BLOCK(4, 4) BLOCK(4, 7)
#define BLOCKS {{F(fe_block_1_7), F(fe_block_1_14)}, {F(fe_block_2_7), F(fe_block_2_14)},                              \
                {F(fe_block_3_4), F(fe_block_3_7)}, {F(fe_block_4_4), F(fe_block_4_7)}}
#else
BLOCK(1, 5) BLOCK(1, 10) BLOCK(2, 3) BLOCK(2, 6)
#define BLOCKS {{F(fe_block_1_5), F(fe_block_1_10)}, {F(fe_block_2_3), F(fe_block_2_6)}}
#endif
/* Multiply any number of rows by nv vectors of columns. The last rows use a block of half the size if they
 * fit, or two such blocks where a single row would be left. */
static void F(fe_product)(int nv, const fe_block *b, int64_t rows, const REAL *x, const REAL *mat, REAL *y) {
    typedef void (*block)(const fe_block *, int64_t, const REAL *, const REAL *, const REAL *, REAL *);
    static const block table[FE_NV][2] = BLOCKS;
    const REAL *plus = (const REAL *)b->plus;
    int64_t most = fe_tile_rows(nv), half = (most + 1) / 2, rest = rows % most, at;
    if (rest == 1 && rows > most && most < 2 * half) rest += most;
    at = rows - rest;
    if (at) table[nv - 1][1](b, at, x, mat, plus, y);
    if (rest) table[nv - 1][rest > half && rest <= most](b, rest, x + at * b->ldx, mat, plus ? plus + at * b->ldy : 0,
                                                         y + at * b->ldy);
}
#undef BLOCK
#undef BLOCKS
#undef VEC
#endif
