/* Products of a few hundred to a few thousand multiplications, where a BLAS call would take longer than the
 * arithmetic. FE_SMALL_ROWS rows of two vectors of y stay in registers while x and w are read once. The last
 * vector of a row overlaps the one before.
 *
 * The file includes itself once per element type.
 */
#ifndef REAL
#ifndef FLOWEDU_SMALL_PRODUCT_H
#define FLOWEDU_SMALL_PRODUCT_H
#include <stdint.h>
#include <string.h>
#include "vector_bytes.h"

enum { FE_SMALL_ROWS = 4 };

#define REAL float
#define F(name) name##_f
#include "small_product.h"
#undef REAL
#undef F
#define REAL double
#define F(name) name##_d
#include "small_product.h"
#undef REAL
#undef F
#endif
#else

typedef REAL F(fe_small_vec) __attribute__((vector_size(FE_VBYTES)));

/* Compute `rows` rows of y, two vectors of columns each: at column j, and `apart` columns further. `rows` is
 * a constant. */
static inline __attribute__((always_inline)) void F(fe_small_block)(
    int rows, int64_t depth, const REAL *x, int64_t rs, int64_t cs, const REAL *w, int64_t ldw, REAL *y, int64_t ldy,
    int64_t apart) {
    F(fe_small_vec) acc[FE_SMALL_ROWS][2], u, v;
    _Pragma("GCC unroll 4") for (int i = 0; i < rows; i++) acc[i][0] = acc[i][1] = (F(fe_small_vec)){0};
    for (int64_t k = 0; k < depth; k++) {
        memcpy(&u, w + k * ldw, sizeof u);
        memcpy(&v, w + k * ldw + apart, sizeof v);
        _Pragma("GCC unroll 4") for (int i = 0; i < rows; i++) {
            const REAL a = x[i * rs + k * cs];
            acc[i][0] += a * u;
            acc[i][1] += a * v;
        }
    }
    _Pragma("GCC unroll 4") for (int i = 0; i < rows; i++) {
        memcpy(y + i * ldy, &acc[i][0], sizeof u);
        memcpy(y + i * ldy + apart, &acc[i][1], sizeof v);
    }
}

/* y (m, n) = x (m, depth) w (depth, n); rows of w are contiguous, n is at least one vector. */
static void F(fe_small)(int64_t m, int64_t n, int64_t depth, const REAL *x, int64_t rs, int64_t cs, const REAL *w,
                        int64_t ldw, REAL *y, int64_t ldy) {
    enum { L = FE_VBYTES / sizeof(REAL) };
    for (int64_t j = 0; j < n; j += 2 * L) {
        const int64_t at = j + L <= n ? j : n - L, apart = at + 2 * L <= n ? L : n - L - at;
        int64_t i = 0;
        for (; i + FE_SMALL_ROWS <= m; i += FE_SMALL_ROWS)
            F(fe_small_block)(FE_SMALL_ROWS, depth, x + i * rs, rs, cs, w + at, ldw, y + i * ldy + at, ldy, apart);
        for (; i < m; i++) F(fe_small_block)(1, depth, x + i * rs, rs, cs, w + at, ldw, y + i * ldy + at, ldy, apart);
    }
}
#endif
