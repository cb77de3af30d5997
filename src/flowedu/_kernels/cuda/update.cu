/* Optimizer updates: the rules of ../core/update_sgd.h and ../ops/update_adaptive.h, one kernel per rule. Those files
 * define the update of one element; flowedu/cuda/launches/update.py reads their rows and appends a RULE for each to this
 * file.
 *
 * A launch updates many parameters (many.h). One thread of each block computes the scalars of a parameter (rates, bias
 * corrections). A negative step number means that the launch changes nothing. */
#include "many.h"
#include "update.h"

static __device__ double fe_number(const fe_view *v) {
    return v->dtype == FE_F32 ? ((const float *)v->data)[0] : ((const double *)v->data)[0];
}
static __device__ void fe_set_number(const fe_view *v, double x) {
    if (v->dtype == FE_F32) *(float *)v->data = (float)x;
    else *(double *)v->data = x;
}

/* The rules' loops, as functions of one element: its weight, gradient, and optimizer state. */
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

struct Row {                               /* a parameter, of up to 32 in a launch (launches/update.py) */
    index_t n, first;
    T *w;                                  /* the weight, */
    const T *dw;                           /* its gradient, */
    T *m, *v, *s;                          /* the state of the rule, */
    T *four, *five;                        /* and, of rules that have them, the two numbers that follow in the group */
    double decay, l1, l2;
};
struct Settings { double scale, beta1, beta2, epsilon; index_t flag; };

/* flat: every array is contiguous; otherwise there is one parameter, and `walk` has its strides. */
#define GIVEN                                                                                                    \
    const Table<Row, 32> table, index_t flat, const Walk<5> walk, const View rate, const int64_t *step, const Settings set, double *sums

typedef void Begin(fe_numbers *, double);
typedef void Each(fe_numbers *, const fe_view *, double);

/* Computed by one thread for the whole block. */
template <Begin begin, Each each>
__device__ __forceinline__ void work_out(fe_numbers *u, fe_view *group, const Row &r, const View &rate, index_t step,
                                         const Settings &s, double w_norm, double g_norm) {
    group[4].data = (char *)r.four, group[5].data = (char *)r.five;
    group[4].dtype = group[5].dtype = sizeof(T) == 4 ? FE_F32 : FE_F64;
    u->lr = fe_number(&rate), u->scale = s.scale, u->beta1 = s.beta1, u->beta2 = s.beta2, u->epsilon = s.epsilon;
    u->c1 = u->c2 = 1, u->flag = (int)s.flag, u->w_square = u->g_square = 0;
    u->w_norm = w_norm, u->g_norm = g_norm;
    begin(u, (double)(step + 1));
    u->l1 = r.l1, u->l2 = r.l2;
    each(u, group, r.decay);
    u->decay = u->lr * r.decay;
}

/* The sum of every second element of `sums`, by the whole block, in a fixed order. */
__device__ __forceinline__ double every_second(const double *sums, index_t n) {
    double sum = 0;
    for (index_t i = threadIdx.x; i < n; i += blockDim.x) sum += sums[2 * i];
    return fold_block<Sum>(sum);
}

/* for each piece: its row in `r`, the row's numbers in `u` */
#define PIECES(begin, each, normed)                                                                              \
    __shared__ fe_numbers u;                                                                                     \
    __shared__ Row r;                                                                                            \
    int before = -1;                                                                                             \
    if (*step < 0) return;                                                                                       \
    for (EACH_BLOCK(piece, table.pieces)) {                                                                      \
        const int k = row_of(table, piece);                                                                      \
        if (k != before) {                                                                                       \
            const double *own = sums + 2 * table.row[k].first;                                                   \
            const index_t many = (table.row[k].n + BLOCK - 1) / BLOCK;                                           \
            const double w_norm = normed ? sqrt(every_second(own, many)) : 0;                                    \
            const double g_norm = normed ? sqrt(every_second(own + 1, many)) : 0;                                \
            __syncthreads();                          /* the previous row is finished */                         \
            if (threadIdx.x == 0) {                                                                              \
                fe_view group[6];                                                                                \
                r = table.row[k];                                                                                \
                work_out<begin, each>(&u, group, r, rate, *step, set, w_norm, g_norm);                           \
            }                                                                                                    \
            __syncthreads();                                                                                     \
        }                                                                                                        \
        before = k;                                                                                              \
        const index_t from = (piece - r.first) * BLOCK, to = min(from + BLOCK, r.n);                             \
        double w_square = 0, g_square = 0;
#define CHANGE(loop)                                                                                             \
        for (index_t i = from + threadIdx.x; i < to; i += blockDim.x) {                                          \
            index_t at[5] = {i, i, i, i, i};                                                                     \
            if (!flat) offsets(walk, i, at);                                                                     \
            loop##_at(r.w + at[0], r.dw + at[1], r.m + at[2], r.v + at[3], r.s + at[4], &u, &w_square, &g_square); \
        }

#define RULE(name, loop, begin, each, normed)                                                                    \
    extern "C" __global__ void name(GIVEN) {                                                                     \
        PIECES(begin, each, normed)                                                                              \
            CHANGE(loop)                                                                                         \
        }                                                                                                        \
    }
#define NORMS(name, loop, begin, each)                                                                           \
    extern "C" __global__ void name##_norms(GIVEN) {                                                             \
        PIECES(begin, each, false)                                                                               \
            CHANGE(loop)                                                                                         \
            w_square = fold_block<Sum>(w_square);                                                                \
            g_square = fold_block<Sum>(g_square);                                                                \
            if (threadIdx.x == 0) sums[2 * piece] = w_square, sums[2 * piece + 1] = g_square;                    \
        }                                                                                                        \
    }
#define END(name, begin, end)                                                                                    \
    extern "C" __global__ void name##_end(GIVEN) {                                                               \
        if (*step < 0) return;                                                                                   \
        for (EACH(k, table.rows)) {                                                                              \
            fe_numbers u;                                                                                        \
            fe_view group[6];                                                                                    \
            work_out<begin, no_each>(&u, group, table.row[k], rate, *step, set, 0, 0);                           \
            end(&u, group);                                                                                      \
        }                                                                                                        \
    }
