/* Optimizer updates: the rules of ../core/update_sgd.h and ../ops/update_adaptive.h, a kernel for each. Those files say
 * what becomes of one element; flowedu/cuda/launches/update.py reads their rows and ends this file with a RULE for each.
 *
 * A launch changes one parameter. The numbers of a call (rates, corrections of bias) are worked out by one thread of each
 * block. A step's number below 0 says: change nothing this time. */
#include "fold.h"
#include "update.h"

static __device__ double fe_number(const fe_view *v) {
    return v->dtype == FE_F32 ? ((const float *)v->data)[0] : ((const double *)v->data)[0];
}

/* The rules' loops, as functions of one element: its weight, gradient, and what is remembered. */
#define FE_ROOT(x) sqrt(x)
#define FE_NORMS(x) do { *w_square += (double)w[i] * w[i]; *g_square += (double)(x) * (x); } while (0)
#define FE_UPDATE_LOOP(NAME, ...)                                                                                \
    __device__ __forceinline__ void NAME##_at(T *w, const T *dw, T *m, T *v, T *s, const fe_numbers *u, double *w_square, \
                                              double *g_square) {                                                \
        const int i = 0, flag = u->flag;                                                                         \
        const T lr = (T)u->lr, decay = (T)u->decay, scale = (T)u->scale, l1 = (T)u->l1, l2 = (T)u->l2;           \
        const T b1 = (T)u->beta1, b2 = (T)u->beta2, eps = (T)u->epsilon, c1 = (T)u->c1, c2 = (T)u->c2;           \
        const T r1 = (T)(1.0 - u->beta1), r2 = (T)(1.0 - u->beta2), rate = (T)(u->lr * u->c1);                   \
        const T g = scale * dw[i] + l1 * ((T)(w[i] > 0) - (T)(w[i] < 0)) + l2 * w[i];                            \
        __VA_ARGS__;                                                                                             \
    }
#define static static __device__
#include "update_adaptive.h"
#undef static
static __device__ void no_begin(fe_numbers *, double) {}
static __device__ void no_each(fe_numbers *, const fe_view *, double) {}
static __device__ void no_end(const fe_numbers *, const fe_view *) {}

struct Settings { double scale, beta1, beta2, epsilon, decay, l1, l2; index_t flag; };

/* What all kernels of a rule are given: n elements; whether they lie side by side in all arrays (else the walk says where);
 * weight, gradient, what the rule remembers; of rules that have them, the two numbers that follow in the group. */
#define GIVEN                                                                                                    \
    index_t n, index_t flat, Walk<5> walk, T *w, const T *dw, T *m, T *v, T *s, View four, View five, View rate_, \
    const int64_t *step, Settings set

__device__ __forceinline__ fe_numbers numbers_of(const View &rate, const Settings &s) {
    fe_numbers u;
    u.lr = fe_number(&rate), u.scale = s.scale, u.beta1 = s.beta1, u.beta2 = s.beta2, u.epsilon = s.epsilon;
    u.c1 = u.c2 = 1, u.flag = (int)s.flag, u.l1 = s.l1, u.l2 = s.l2, u.w_norm = u.g_norm = u.w_square = u.g_square = 0;
    u.decay = 0;
    return u;
}

enum { BLOCK = 2048 };                     /* elements whose squares a block adds up for the norms */

/* A parameter's norms, from the sums of its blocks: in order, so they are the same every time. */
__device__ __forceinline__ void add_blocks(const double *sums, index_t blocks, fe_numbers *u) {
    double w = 0, g = 0;
    for (index_t i = 0; i < blocks; i++) w += sums[2 * i], g += sums[2 * i + 1];
    u->w_norm = sqrt(w), u->g_norm = sqrt(g);
}

#define NUMBERS(begin, each, end, sums)                                                                          \
    __shared__ fe_numbers u;                                                                                     \
    if (*step < 0) return;                                                                                       \
    if (threadIdx.x == 0) {                                                                                      \
        fe_view group[6];                                                                                        \
        group[4] = four, group[5] = five;                                                                        \
        u = numbers_of(rate_, set);                                                                              \
        begin(&u, (double)(*step + 1));                                                                          \
        if (sums) add_blocks(sums, (n + BLOCK - 1) / BLOCK, &u);                                                 \
        each(&u, group, set.decay);                                                                              \
        u.decay = u.lr * set.decay;                                                                              \
        end(&u, group);                                                                                          \
    }                                                                                                            \
    __syncthreads();
#define CHANGE(loop, i)                                                                                          \
    index_t at[5] = {i, i, i, i, i};                                                                             \
    if (!flat) offsets(walk, i, at);                                                                             \
    loop##_at(w + at[0], dw + at[1], m + at[2], v + at[3], s + at[4], &u, &w_square, &g_square);

#define RULE(name, loop, begin, each)                                                                            \
    extern "C" __global__ void name(GIVEN, const double *sums) {                                                 \
        NUMBERS(begin, each, no_end, sums)                                                                       \
        double w_square = 0, g_square = 0;                                                                       \
        for (EACH(i, n)) { CHANGE(loop, i) }                                                                     \
    }
#define NORMS(name, loop, begin, each)                                                                           \
    extern "C" __global__ void name##_norms(GIVEN, double *sums) {                                               \
        const double *none = 0;                                                                                  \
        NUMBERS(begin, each, no_end, none)                                                                       \
        for (EACH_BLOCK(b, (n + BLOCK - 1) / BLOCK)) {                                                           \
            double w_square = 0, g_square = 0;                                                                   \
            for (index_t i = b * BLOCK + threadIdx.x; i < n && i < (b + 1) * BLOCK; i += blockDim.x) { CHANGE(loop, i) } \
            w_square = fold_block<Sum>(w_square);                                                                \
            g_square = fold_block<Sum>(g_square);                                                                \
            if (threadIdx.x == 0) sums[2 * b] = w_square, sums[2 * b + 1] = g_square;                            \
        }                                                                                                        \
    }
#define END(name, begin, end)                                                                                    \
    extern "C" __global__ void name##_end(GIVEN) {                                                               \
        const double *none = 0;                                                                                  \
        NUMBERS(begin, no_each, end, none)                                                                       \
    }
