/* Winograd's convolution F(m x m, k x k) with m + k = 9: the transforms. (conv_tile.h has the products.)
 *
 * A k x k correlation over an 8 x 8 tile of input gives m x m outputs. As a product of polynomials, it can be
 * computed from their values at 8 points (0, 1, -1, 2, -2, 1/2, -1/2, infinity) per axis:
 *
 *     y = A' [ (G g G') * (B' d B) ] A        d: tile, g: kernel, *: element by element
 *
 * so 64 multiplications replace m*m*k*k: 400 for 5 x 5 (m = 4), 324 for 3 x 3 (m = 6). Summed over channels,
 * each of the 64 is a matrix product. B' is the same for all k, which is why m + k is fixed.
 *
 * Every function works on vectors of channels. "step": distance between the 64 values of a tile.
 */
#ifndef FLOWEDU_WINOGRAD_H
#define FLOWEDU_WINOGRAD_H
#include "conv_tile.h"

typedef vec_f fe_wv;
enum { FE_WL = FE_VBYTES / 4, FE_WINO_MAX = 6 };
#define FE_IN static inline __attribute__((always_inline))
#define AT(p, i) (*(fe_wv *)((p) + (i)))

/* d = B' s */
FE_IN void fe_wino_points(const fe_wv *s, int ss, fe_wv *d, int ds) {
    fe_wv s0 = s[0], s1 = s[ss], s2 = s[2 * ss], s3 = s[3 * ss], s4 = s[4 * ss], s5 = s[5 * ss], s6 = s[6 * ss];
    fe_wv a = s2 + s6 - 4.25f * s4, b = s1 + s5 - 4.25f * s3;
    d[0] = s0 - s6 + 5.25f * (s4 - s2);
    d[ds] = a + b;
    d[2 * ds] = a - b;
    a = 0.25f * s2 - 1.25f * s4 + s6, b = 0.5f * s1 - 2.5f * s3 + 2.0f * s5;
    d[3 * ds] = a + b;
    d[4 * ds] = a - b;
    a = 4.0f * s2 - 5.0f * s4 + s6, b = 2.0f * s1 - 2.5f * s3 + 0.5f * s5;
    d[5 * ds] = a + b;
    d[6 * ds] = a - b;
    d[7 * ds] = s[7 * ss] - s1 + 5.25f * (s3 - s5);
}

/* o = A' y: m values of 8 */
FE_IN void fe_wino_values(int m, const fe_wv *y, int ys, fe_wv *o, int os) {
    fe_wv s1 = y[ys] + y[2 * ys], d1 = y[ys] - y[2 * ys], s2 = y[3 * ys] + y[4 * ys], d2 = y[3 * ys] - y[4 * ys];
    fe_wv s3 = y[5 * ys] + y[6 * ys], d3 = y[5 * ys] - y[6 * ys];
    o[0] = y[0] + s1 + s2 + s3;
    o[os] = d1 + 2.0f * d2 + 0.5f * d3;
    o[2 * os] = s1 + 4.0f * s2 + 0.25f * s3;
    o[3 * os] = d1 + 8.0f * d2 + 0.125f * d3;
    if (m > 4) o[4 * os] = s1 + 16.0f * s2 + 0.0625f * s3;
    if (m > 5) o[5 * os] = d1 + 32.0f * d2 + 0.03125f * d3;
    o[(m - 1) * os] += y[7 * ys];
}

/* z = A y: 8 values of m, the transpose of the one above */
FE_IN void fe_wino_spread(int m, const fe_wv *y, int ys, fe_wv *z, int zs) {
    fe_wv y0 = y[0], y1 = y[ys], y2 = y[2 * ys], y3 = y[3 * ys], none = {0};
    fe_wv y4 = m > 4 ? y[4 * ys] : none, y5 = m > 5 ? y[5 * ys] : none;
    fe_wv e = y0 + y2 + y4, o = y1 + y3 + y5;
    z[0] = y0;
    z[zs] = e + o;
    z[2 * zs] = e - o;
    e = y0 + 4.0f * y2 + 16.0f * y4, o = 2.0f * y1 + 8.0f * y3 + 32.0f * y5;
    z[3 * zs] = e + o;
    z[4 * zs] = e - o;
    e = y0 + 0.25f * y2 + 0.0625f * y4, o = 0.5f * y1 + 0.125f * y3 + 0.03125f * y5;
    z[5 * zs] = e + o;
    z[6 * zs] = e - o;
    z[7 * zs] = m > 5 ? y5 : m > 4 ? y4 : y3;
}

/* v = B' d B for `channels` channels of a tile; pixel[8 * i + j] points to d[i][j]. */
static void fe_wino_in(const float *const *pixel, int64_t channels, float *v, int64_t step) {
    for (int64_t c = 0; c < channels; c += FE_WL) {
        fe_wv d[64], t[64];
        FE_UNROLL for (int j = 0; j < 8; j++) {
            for (int i = 0; i < 8; i++) d[i] = AT(pixel[8 * i + j], c);
            fe_wino_points(d, 1, t + j, 8);
        }
        FE_UNROLL for (int i = 0; i < 8; i++) {
            fe_wino_points(t + 8 * i, 1, d, 1);
            for (int j = 0; j < 8; j++) AT(v, (8 * i + j) * step + c) = d[j];
        }
    }
}

/* y = A' p A: the first `rows` x `cols` of the m x m outputs; strides: `channels` between pixels, `pitch`
 * between rows. */
FE_IN void fe_wino_out_m(int m, const float *p, int64_t step, int64_t channels, float *y, int64_t pitch, int rows,
                         int cols) {
    for (int64_t c = 0; c < channels; c += FE_WL) {
        fe_wv d[8], t[8 * FE_WINO_MAX];
        FE_UNROLL for (int j = 0; j < 8; j++) {
            for (int i = 0; i < 8; i++) d[i] = AT((float *)p, (8 * i + j) * step + c);
            fe_wino_values(m, d, 1, t + j, 8);
        }
        for (int i = 0; i < rows; i++) {
            fe_wino_values(m, t + 8 * i, 1, d, 1);
            for (int j = 0; j < cols; j++) AT(y, i * pitch + j * channels + c) = d[j];
        }
    }
}

/* z = A y A' for the gradient of the weights; pixel[m * i + j] points to y[i][j]. */
FE_IN void fe_wino_back_m(int m, const float *const *pixel, int64_t channels, float *z, int64_t step) {
    for (int64_t c = 0; c < channels; c += FE_WL) {
        fe_wv d[8], t[8 * FE_WINO_MAX];
        FE_UNROLL for (int j = 0; j < m; j++) {
            for (int i = 0; i < m; i++) d[i] = AT(pixel[m * i + j], c);
            fe_wino_spread(m, d, 1, t + j, FE_WINO_MAX);
        }
        FE_UNROLL for (int i = 0; i < 8; i++) {
            fe_wino_spread(m, t + FE_WINO_MAX * i, 1, d, 1);
            for (int j = 0; j < 8; j++) AT(z, (8 * i + j) * step + c) = d[j];
        }
    }
}

#define FE_WINO_CASES(f, ...)                                                                                         \
    if (m == 4) f(4, __VA_ARGS__); else if (m == 5) f(5, __VA_ARGS__); else f(6, __VA_ARGS__);
static void fe_wino_out(int m, const float *p, int64_t step, int64_t channels, float *y, int64_t pitch, int rows,
                        int cols) {
    FE_WINO_CASES(fe_wino_out_m, p, step, channels, y, pitch, rows, cols)
}
static void fe_wino_back(int m, const float *const *pixel, int64_t channels, float *z, int64_t step) {
    FE_WINO_CASES(fe_wino_back_m, pixel, channels, z, step)
}

/* G[point][power] = point^power / product of its distances to the other points; for infinity only the highest
 * power is 1. */
static const float FE_WINO_G[7][5] = {
    {1, 0, 0, 0, 0},    /* not -1: B' has the sign */
    {-2 / 9.f, -2 / 9.f, -2 / 9.f, -2 / 9.f, -2 / 9.f}, {-2 / 9.f, 2 / 9.f, -2 / 9.f, 2 / 9.f, -2 / 9.f},
    {1 / 90.f, 2 / 90.f, 4 / 90.f, 8 / 90.f, 16 / 90.f}, {1 / 90.f, -2 / 90.f, 4 / 90.f, -8 / 90.f, 16 / 90.f},
    {32 / 45.f, 16 / 45.f, 8 / 45.f, 4 / 45.f, 2 / 45.f}, {32 / 45.f, -16 / 45.f, 8 / 45.f, -4 / 45.f, 2 / 45.f}};

static inline float fe_wino_g(int k, int point, int power) {
    return point == 7 ? power == k - 1 : FE_WINO_G[point][power];
}

/* u = G g G' for one vector of kernels; taps are `gs` apart. flip: rotate the kernel by 180 degrees. */
static void fe_wino_kernel(int k, const float *g, int64_t gs, int flip, float *u, int64_t step) {
    fe_wv t[8 * 5];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < k; j++) {
            fe_wv s = {0};
            for (int a = 0; a < k; a++) s += fe_wino_g(k, i, a) * AT((float *)g, (flip ? k * k - 1 - a * k - j : a * k + j) * gs);
            t[i * k + j] = s;
        }
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            fe_wv s = {0};
            for (int b = 0; b < k; b++) s += fe_wino_g(k, j, b) * t[i * k + b];
            AT(u, (8 * i + j) * step) = s;
        }
}

/* g = G' u G, where u is the sum of `parts` arrays `distance` apart: the transpose of the one above. */
static void fe_wino_taps(int k, const float *u, int64_t step, int parts, int64_t distance, float *g, int64_t gs) {
    fe_wv t[8 * 5];
    for (int i = 0; i < 8; i++) {
        fe_wv row[8];
        for (int j = 0; j < 8; j++) {
            row[j] = AT((float *)u, (8 * i + j) * step);
            for (int p = 1; p < parts; p++) row[j] += AT((float *)u, (8 * i + j) * step + p * distance);
        }
        for (int b = 0; b < k; b++) {
            fe_wv s = {0};
            for (int j = 0; j < 8; j++) s += fe_wino_g(k, j, b) * row[j];
            t[i * k + b] = s;
        }
    }
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k; b++) {
            fe_wv s = {0};
            for (int i = 0; i < 8; i++) s += fe_wino_g(k, i, a) * t[i * k + b];
            AT(g, (a * k + b) * gs) = s;
        }
}
/* Ranges. A transform mixes all values of a tile, so its rounding errors scale with the largest ones. Tiles
 * are computed as plain sums if they hold NaN, infinity, or values whose products may overflow, and in two
 * cases of finite values. (Norms are Euclidean, over all channels.)
 *
 * FE_WINO_RANGE: |tile| / |window| is larger for some output. In tiles of random numbers of mixed magnitudes
 * the error was at most 5e-6 |tile| / |window| of the output's sum of |x| |w|: 8 keeps it below 1e-4.
 *
 * FE_WINO_PEAK: one pixel has a larger share of the tile's squares. An output that reads it with a small
 * weight has a small sum, but the error of the peak. */
enum { FE_WINO_RANGE = 8 };
static const float FE_WINO_LARGEST = 1e32f, FE_WINO_PEAK = 0.5f;
typedef int32_t fe_wi __attribute__((vector_size(FE_VBYTES), aligned(4), may_alias));
typedef float fe_w8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t fe_i8 __attribute__((vector_size(32), aligned(4), may_alias));

/* q[i] = sum of squares over the channels of pixel i */
static void fe_wino_squares(const float *x, int64_t plane, int64_t channels, int64_t n, float *q) {
    int64_t i = 0;
    for (; i + 4 * FE_WL <= n; i += 4 * FE_WL) {
        fe_wv s[4] = {{0}};
        for (int64_t c = 0; c < channels; c++)
            FE_UNROLL for (int j = 0; j < 4; j++) {
                fe_wv v = AT((float *)x, c * plane + i + j * FE_WL);
                s[j] += v * v;
            }
        FE_UNROLL for (int j = 0; j < 4; j++) AT(q, i + j * FE_WL) = s[j];
    }
    while (i < n && n >= FE_WL) {               /* the last vector overlaps the one before */
        if (i > n - FE_WL) i = n - FE_WL;
        fe_wv s = {0};
        for (int64_t c = 0; c < channels; c++) {
            fe_wv v = AT((float *)x, c * plane + i);
            s += v * v;
        }
        AT(q, i) = s;
        i += FE_WL;
    }
    for (; i < n; i++) {
        q[i] = 0;
        for (int64_t c = 0; c < channels; c++) q[i] += x[c * plane + i] * x[c * plane + i];
    }
}

/* The bits of nonnegative floats have the order of the floats; NaN is larger than infinity. */
FE_IN fe_wi fe_wino_larger(fe_wi a, fe_wi b) {
    fe_wi m = a > b;
    return (a & m) | (b & ~m);
}

/* True if no tile of a run can exceed the range or have a peak, because every pixel is smaller than every
 * window. (A tile has 64 pixels, so |tile| is at most 8 times the smallest window then.) q: squares of `rows`
 * x `cols` pixels, padded by one vector; it has `down` x `across` windows of k x k; sums: cols + 2 vectors of
 * scratch. */
static int fe_wino_is_calm(const float *q, int64_t rows, int64_t cols, int k, int64_t down, int64_t across, float *sums) {
    fe_wi most = {0}, least = {0};              /* bits: largest square; 0x7fffffff - smallest window */
    int32_t high = 0, low = 0;
    for (int64_t i = 0; i < rows * cols; i += FE_WL) most = fe_wino_larger(most, *(const fe_wi *)(q + i) & 0x7fffffff);
    for (int64_t r = 0; r < down; r++) {
        for (int64_t c = 0; c < cols; c += FE_WL) {
            fe_wv s = {0};
            for (int a = 0; a < k; a++) s += AT((float *)q, (r + a) * cols + c);
            AT(sums, c) = s;
        }
        AT(sums, across + k - 1) = (fe_wv){0} + 3e38f;          /* windows past the end do not count */
        for (int64_t c = 0; c < across; c += FE_WL) {
            fe_wv s = {0};
            for (int b = 0; b < k; b++) s += AT(sums, c + b);
            least = fe_wino_larger(least, 0x7fffffff - *(fe_wi *)&s);
        }
    }
    for (int i = 0; i < FE_WL; i++) {
        if (most[i] > high) high = most[i];
        if (least[i] > low) low = least[i];
    }
    union { int32_t bits; float value; } h = {high}, l = {0x7fffffff - low};
    return h.value < FE_WINO_LARGEST / 64 && h.value <= FE_WINO_PEAK * l.value;
}

/* The sum and the largest of a tile's 8 x 8 squares. Negative if they are too large or not finite. */
FE_IN float fe_wino_total(const float *q, int64_t pitch, float *peak) {
    fe_w8 all = {0};
    fe_i8 most = {0};
    float total = 0;
    int32_t high = 0;
    for (int i = 0; i < 8; i++) {
        fe_i8 v = *(const fe_i8 *)(q + i * pitch), m = v > most;
        all += *(const fe_w8 *)(q + i * pitch);
        most = (v & m) | (most & ~m);
    }
    for (int j = 0; j < 8; j++) {
        total += all[j];
        if (most[j] > high) high = most[j];
    }
    union { int32_t bits; float value; } h = {high};
    *peak = h.value;
    return total < FE_WINO_LARGEST ? total : -1;
}

/* True if some of the first `down` x `across` outputs of a tile have windows that are small relative to the
 * tile, or if the tile has a peak. */
static int fe_wino_is_wide(const float *q, int64_t pitch, int k, int down, int across) {
    float peak, total = fe_wino_total(q, pitch, &peak), sums[16] = {0};
    fe_i8 least = {0}, there;                   /* as bits: 0x7fffffff less the smallest window */
    int32_t low = 0;
    if (total < 0 || peak > FE_WINO_PEAK * total) return 1;
    for (int j = 0; j < 8; j++) there[j] = j < across ? -1 : 0;
    for (int i = 0; i < down; i++) {
        fe_w8 s = {0};
        for (int a = 0; a < k; a++) s += *(const fe_w8 *)(q + (i + a) * pitch);
        *(fe_w8 *)sums = s;
        s = (fe_w8){0};
        for (int b = 0; b < k; b++) s += *(const fe_w8 *)(sums + b);
        fe_i8 v = (0x7fffffff - *(fe_i8 *)&s) & there, m = v > least;
        least = (v & m) | (least & ~m);
    }
    for (int j = 0; j < 8; j++)
        if (least[j] > low) low = least[j];
    union { int32_t bits; float value; } l = {0x7fffffff - low};
    return total > FE_WINO_RANGE * FE_WINO_RANGE * l.value;
}

/* The same for the gradient of the weights, where a window is most of a tile: true if a tile of several
 * pixels has a peak. */
static int fe_wino_is_peak(const float *q, int64_t pitch, int several) {
    float peak, total = fe_wino_total(q, pitch, &peak);
    return total < 0 || (several && peak > FE_WINO_PEAK * total);
}

/* Sums and maxima of squares for one vector of kernels and one input channel, as input of fe_wino_are_few. */
static void fe_wino_note(int taps, const float *g, int64_t gs, float *all, float *most) {
    fe_wv s = AT(all, 0);
    fe_wi m = *(fe_wi *)most;
    for (int t = 0; t < taps; t++) {
        fe_wv v = AT((float *)g, t * gs) * AT((float *)g, t * gs);
        s += v;
        m = fe_wino_larger(m, *(fe_wi *)&v);
    }
    AT(all, 0) = s;
    *(fe_wi *)most = m;
}

/* True if in some kernel of a vector fewer than four weights outweigh all others, or a weight is too large or
 * not finite. Where these weights meet small inputs, rounding errors of large values dominate the output.
 * Sums of `parts` threads, `apart`. */
static int fe_wino_are_few(const float *all, const float *most, int parts, int64_t apart) {
    for (int i = 0; i < FE_WL; i++) {
        float s = 0, m = 0;
        for (int p = 0; p < parts; p++) {
            s += all[p * apart + i];
            if (!(most[p * apart + i] <= m)) m = most[p * apart + i];
        }
        if (!(s < FE_WINO_LARGEST && s >= 4 * m)) return 1;
    }
    return 0;
}

/* g[t] += the sum of `parts` vectors `distance` apart, for each tap. */
static void fe_wino_add(int taps, const float *u, int64_t step, int parts, int64_t distance, float *g, int64_t gs) {
    for (int t = 0; t < taps; t++)
        for (int p = 0; p < parts; p++) AT(g, t * gs) += AT((float *)u, t * step + p * distance);
}
#undef AT
#undef FE_WINO_CASES
#endif
