/* Winograd's convolution F(m x m, k x k) with m + k = 9: the transforms. (The products are conv_tile.h's.)
 *
 * A k x k correlation over an 8 x 8 tile of input gives m x m outputs. Seen as products of polynomials, it can be done
 * by their values in 8 points (0, 1, -1, 2, -2, 1/2, -1/2, infinity) per axis:
 *     y = A' [ (G g G') * (B' d B) ] A        d: tile, g: kernel, *: element by element
 * so 64 multiplications take the place of m*m*k*k: 400 for 5 x 5 (m = 4), 324 for 3 x 3 (m = 6). Summed over channels,
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

/* v = B' d B for `channels` channels of a tile; pixel[8 * i + j]: where d[i][j] lies. */
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

/* y = A' p A: the first `rows` x `cols` of the m x m outputs; pixels are `channels` apart, rows of them `pitch`. */
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

/* z = A y A' for the gradient of the weights; pixel[m * i + j]: where y[i][j] lies. */
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

/* G[point][power] = point^power / product of its distances to the other points; infinity takes the highest power. */
static const float FE_WINO_G[7][5] = {
    {1, 0, 0, 0, 0},    /* not -1: the sign is in B' */
    {-2 / 9.f, -2 / 9.f, -2 / 9.f, -2 / 9.f, -2 / 9.f}, {-2 / 9.f, 2 / 9.f, -2 / 9.f, 2 / 9.f, -2 / 9.f},
    {1 / 90.f, 2 / 90.f, 4 / 90.f, 8 / 90.f, 16 / 90.f}, {1 / 90.f, -2 / 90.f, 4 / 90.f, -8 / 90.f, 16 / 90.f},
    {32 / 45.f, 16 / 45.f, 8 / 45.f, 4 / 45.f, 2 / 45.f}, {32 / 45.f, -16 / 45.f, 8 / 45.f, -4 / 45.f, 2 / 45.f}};

static inline float fe_wino_g(int k, int point, int power) {
    return point == 7 ? power == k - 1 : FE_WINO_G[point][power];
}

/* u = G g G' for one vector of kernels; taps are `gs` apart. flip: the kernel turned by 180 degrees. */
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
#undef AT
#undef FE_WINO_CASES
#endif
