/* Optimizer updates: the rules of ../core/update_sgd.h and ../ops/update_adaptive.h, a kernel for each. Those files say what
 * becomes of one element; flowedu/cuda/launches/update.py reads their rows and ends this file with a RULE for each.
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

struct Group { View member[6]; };          /* weight, gradient, what the rule remembers */
struct Settings { double scale, beta1, beta2, epsilon, decay, l1, l2; index_t flag; };
struct Parameter {                         /* what all kernels of a rule are given */
    index_t n, flat;                       /* flat: all members lie side by side */
    Walk<5> walk;
    Group group;
    View lr, step;
    Settings s;
};

__device__ __forceinline__ fe_numbers numbers_of(const Parameter &p) {
    fe_numbers u;
    u.lr = fe_number(&p.lr), u.scale = p.s.scale, u.beta1 = p.s.beta1, u.beta2 = p.s.beta2, u.epsilon = p.s.epsilon;
    u.c1 = u.c2 = 1, u.flag = (int)p.s.flag, u.l1 = p.s.l1, u.l2 = p.s.l2, u.w_norm = u.g_norm = u.w_square = u.g_square = 0;
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

#define NUMBERS(p, begin, each, sums)                                                                            \
    __shared__ fe_numbers u;                                                                                     \
    const int64_t step = *(const int64_t *)p.step.data;                                                          \
    if (step < 0) return;                                                                                        \
    if (threadIdx.x == 0) {                                                                                      \
        u = numbers_of(p);                                                                                       \
        begin(&u, (double)(step + 1));                                                                           \
        if (sums) add_blocks(sums, (p.n + BLOCK - 1) / BLOCK, &u);                                               \
        each(&u, p.group.member, p.s.decay);                                                                     \
        u.decay = u.lr * p.s.decay;                                                                              \
    }                                                                                                            \
    __syncthreads();
#define ELEMENT(p, k, i) ((T *)p.group.member[k].data + (p.flat ? i : at[k]))
#define CHANGE(p, loop, i)                                                                                       \
    index_t at[5];                                                                                               \
    if (!p.flat) offsets(p.walk, i, at);                                                                         \
    loop##_at(ELEMENT(p, 0, i), ELEMENT(p, 1, i), ELEMENT(p, 2, i), ELEMENT(p, 3, i), ELEMENT(p, 4, i), &u, &w_square, &g_square);

#define RULE(name, loop, begin, each)                                                                            \
    extern "C" __global__ void name(Parameter p, const double *sums) {                                           \
        NUMBERS(p, begin, each, sums)                                                                            \
        double w_square = 0, g_square = 0;                                                                       \
        for (EACH(i, p.n)) { CHANGE(p, loop, i) }                                                                \
    }
#define NORMS(name, loop, begin, each)                                                                           \
    extern "C" __global__ void name##_norms(Parameter p, double *sums) {                                         \
        const double *none = 0;                                                                                  \
        NUMBERS(p, begin, each, none)                                                                            \
        for (EACH_BLOCK(b, (p.n + BLOCK - 1) / BLOCK)) {                                                         \
            double w_square = 0, g_square = 0;                                                                   \
            for (index_t i = b * BLOCK + threadIdx.x; i < p.n && i < (b + 1) * BLOCK; i += blockDim.x) { CHANGE(p, loop, i) } \
            w_square = fold_block<Sum>(w_square);                                                                \
            g_square = fold_block<Sum>(g_square);                                                                \
            if (threadIdx.x == 0) sums[2 * b] = w_square, sums[2 * b + 1] = g_square;                            \
        }                                                                                                        \
    }
#define END(name, begin, end)                                                                                    \
    extern "C" __global__ void name##_end(Parameter p) {                                                         \
        const double *none = 0;                                                                                  \
        NUMBERS(p, begin, no_each, none)                                                                         \
        if (threadIdx.x == 0) end(&u, p.group.member);                                                           \
    }
