/* Optimizer updates: a table of rules (SGD's replaces the plain one in _kernels/core/update.pyx), and the
 * engine that runs any rule over all parameters of a model.
 *
 * Arguments of a call: lr (1,), step (1,) int64, then for each parameter its group: weight, gradient, and the
 * rule's state (core/ops/update.py). A call has no outputs: inputs are modified in place, in one pass over
 * memory. A negative step number skips the update. ints: [flag]. reals: [scale, three numbers], then for each
 * parameter its weight decay, l1 and l2; each rule documents its three numbers.
 *
 * A rule is a loop and a row. FE_UPDATE_LOOP(name, formula) defines the loop over n elements of a parameter,
 * for float and double; the formula updates element i:
 *
 *     w[i], m[i], v[i], s[i]   the weight and the state
 *     g                        the gradient, scaled, including the penalties' gradients
 *     lr, decay                the rate, and rate * weight decay
 *     b1, b2, eps, r1, r2      the three numbers; 1 - b1, 1 - b2
 *     c1, c2, rate, flag       corrections of bias; lr * c1; the flag
 *     FE_NORMS(x)              adds the squares of w[i] and x to the sums of this block
 *
 * A row, X(name, members, loop, ...), defines the kernel `name`: the size of a group, the loop, and by name
 * the nonzero fields of fe_rule. FE_UPDATE_TABLE lists the rows for update.pxd. Another file with rows is
 * another table.
 *
 * Rules that scale the rate of a parameter by norms first run a pass of `norms`, which writes the sums of
 * squares of each block of FE_BLOCK elements to scratch. After a barrier, the second pass adds up the blocks
 * of a parameter in order, so the result does not depend on the number of threads.
 *
 * Compiled without fused multiply-add (setup.py): where two arrays are close in memory the compiler picks a
 * scalar loop and would fuse differently there, so the last bit of a weight would depend on its address.
 */
#ifndef FLOWEDU_UPDATE_H
#define FLOWEDU_UPDATE_H
#include <math.h>
#include "abi.h"
#include "halves.h"

enum { FE_CHUNK = 256, FE_BLOCK = 2048, FE_MAX_ARRAYS = 5 };

typedef struct {             /* one parameter's coefficients */
    double lr, decay;        /* of the update; lr * weight decay */
    double scale, l1, l2, beta1, beta2, epsilon;
    double c1, c2;           /* corrections of bias */
    int flag;
    double w_norm, g_norm;   /* of a parameter, in the second pass of rules that need them */
    double w_square, g_square; /* sums of a block, in the first */
} fe_numbers;

typedef void (*fe_loop)(void *const *p, int64_t n, fe_numbers *u);

typedef struct {
    int members;             /* arrays in a group */
    const fe_loop *loop;     /* by FE_F32, FE_F64 */
    int single;              /* number of trailing members that hold one number per parameter */
    const fe_loop *norms;    /* the first pass, or 0 */
    void (*begin)(fe_numbers *u, double t);                                 /* per call; t: step, from 1 */
    void (*each)(fe_numbers *u, const fe_view *group, double weight_decay); /* per parameter, after norms */
    void (*end)(const fe_numbers *u, const fe_view *group);                 /* last; called by one thread */
} fe_rule;

typedef struct {
    const char *name;
    const fe_rule *rule;
    fe_kernel kernel;
    fe_work work;            /* of rules with norms */
} fe_update_entry;

#define FE_ROOT(x) _Generic((x), float: sqrtf, double: sqrt)(x)
#define FE_NORMS(x) do { w_square += (double)w[i] * w[i]; g_square += (double)(x) * (x); } while (0)

#define FE_LOOP_OF(TYPE, TAG, NAME, ...)                                                                     \
    static void NAME##_##TAG(void *const *p, int64_t n, fe_numbers *u) {                                     \
        typedef TYPE T;                                                                                      \
        T *w = (T *)p[0], *m = (T *)p[2], *v = (T *)p[3], *s = (T *)p[4];                                    \
        const T *dw = (const T *)p[1];                                                                       \
        const T lr = (T)u->lr, decay = (T)u->decay, scale = (T)u->scale, l1 = (T)u->l1, l2 = (T)u->l2;       \
        const T b1 = (T)u->beta1, b2 = (T)u->beta2, eps = (T)u->epsilon, c1 = (T)u->c1, c2 = (T)u->c2;       \
        const T r1 = (T)(1.0 - u->beta1), r2 = (T)(1.0 - u->beta2), rate = (T)(u->lr * u->c1);               \
        const int flag = u->flag;                                                                            \
        double w_square = 0, g_square = 0;                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const T g = scale * dw[i] + l1 * ((T)(w[i] > 0) - (T)(w[i] < 0)) + l2 * w[i];                    \
            __VA_ARGS__;                                                                                     \
        }                                                                                                    \
        u->w_square += w_square;                                                                             \
        u->g_square += g_square;                                                                             \
    }
#define FE_UPDATE_LOOP(NAME, ...)                                                                            \
    FE_LOOP_OF(float, f32, NAME, __VA_ARGS__)                                                                \
    FE_LOOP_OF(double, f64, NAME, __VA_ARGS__)                                                               \
    static const fe_loop NAME[] = {NAME##_f32, NAME##_f64};

#define FE_UPDATE_KERNEL(NAME, MEMBERS, LOOP, ...)                                                           \
    static const fe_rule NAME##_rule = {.members = MEMBERS, .loop = LOOP, __VA_ARGS__};                      \
    static int NAME(fe_call *call, const fe_team *team, void *tag) {                                         \
        return fe_update(&NAME##_rule, call, team);                                                          \
    }                                                                                                        \
    static int64_t NAME##_work(const fe_call *call, int nt) { return fe_norms_work(&NAME##_rule, call); }
#define FE_UPDATE_ENTRY(NAME, MEMBERS, LOOP, ...) {#NAME, &NAME##_rule, NAME, NAME##_work},
#define FE_UPDATE_TABLE(ROWS)                                                                                \
    ROWS(FE_UPDATE_KERNEL)                                                                                   \
    static const fe_update_entry FE_UPDATES[] = {ROWS(FE_UPDATE_ENTRY)};                                     \
    enum { FE_NUPDATES = sizeof(FE_UPDATES) / sizeof(FE_UPDATES[0]) };

/* ---- the engine */
static inline int fe_flat(const fe_view *v) {
    int64_t step = 1;
    for (int d = v->ndim - 1; d >= 0; d--) {
        if (v->shape[d] != 1 && v->stride[d] != step) return 0;
        step *= v->shape[d];
    }
    return 1;
}

static inline int fe_is_half(int dtype) { return dtype == FE_F16 || dtype == FE_BF16; }

static inline void *fe_address(const fe_view *v, int64_t i) { return v->data + fe_place(v, i) * fe_item[v->dtype]; }

/* n elements, `step` apart in memory and contiguous in the buffer, which holds 16-bit floats as float32. */
#define FE_EACH(body) for (int64_t i = 0; i < n; i++) body; break
static inline void fe_load(void *buffer, const void *at, int64_t step, int64_t n, int dtype) {
    float *b = (float *)buffer;
    switch (dtype) {
    case FE_F32: FE_EACH(b[i] = ((const float *)at)[i * step]);
    case FE_F16: FE_EACH(b[i] = fe_from_f16(((const fe_half *)at)[i * step]));
    case FE_BF16: FE_EACH(b[i] = fe_from_bf16(((const fe_bf16 *)at)[i * step]));
    default: FE_EACH(((double *)buffer)[i] = ((const double *)at)[i * step]);
    }
}

static inline void fe_store(void *at, int64_t step, const void *buffer, int64_t n, int dtype) {
    const float *b = (const float *)buffer;
    switch (dtype) {
    case FE_F32: FE_EACH(((float *)at)[i * step] = b[i]);
    case FE_F16: FE_EACH(((fe_half *)at)[i * step] = fe_to_f16(b[i]));
    case FE_BF16: FE_EACH(((fe_bf16 *)at)[i * step] = fe_to_bf16(b[i]));
    default: FE_EACH(((double *)at)[i * step] = ((const double *)buffer)[i]);
    }
}

/* Update elements [lo, hi) of a group. Strided arrays and 16-bit floats pass through a small buffer, in
 * pieces of a row. */
static void fe_part(const fe_loop *loops, int arrays, const fe_view *group, int64_t lo, int64_t hi, fe_numbers *u) {
    double buffer[FE_MAX_ARRAYS][FE_CHUNK];
    void *p[FE_MAX_ARRAYS] = {0}, *at[FE_MAX_ARRAYS];
    const int dtype = group->dtype, last = group->ndim - 1, half = fe_is_half(dtype);
    const fe_loop loop = loops[half ? FE_F32 : dtype];
    int flat = 1;
    for (int k = 0; k < arrays; k++) {
        p[k] = group[k].data + lo * fe_item[dtype];
        flat = flat && fe_flat(&group[k]);
    }
    if (flat && !half) {
        loop(p, hi - lo, u);
        return;
    }
    for (int64_t i = lo, n; i < hi; i += n) {
        const int64_t row = flat ? hi - i : group->shape[last] - i % group->shape[last];
        n = row < hi - i ? row : hi - i;
        n = n < FE_CHUNK ? n : FE_CHUNK;
        for (int k = 0; k < arrays; k++) {
            const int64_t step = flat ? 1 : group[k].stride[last];
            at[k] = p[k] = fe_address(&group[k], i);
            if (half || step != 1) fe_load(p[k] = buffer[k], at[k], step, n, dtype);
        }
        loop(p, n, u);
        for (int k = 0; k < arrays; k++) {
            const int64_t step = flat ? 1 : group[k].stride[last];
            if ((half || step != 1) && k != 1) fe_store(at[k], step, p[k], n, dtype);
        }
    }
}

static inline double fe_number(const fe_view *v) {
    float f;
    if (v->dtype == FE_F64) return ((const double *)v->data)[0];
    fe_load(&f, v->data, 1, 1, v->dtype);
    return f;
}

static inline void fe_set_number(const fe_view *v, double x) {
    const float f = (float)x;
    fe_store(v->data, 1, v->dtype == FE_F64 ? (const void *)&x : (const void *)&f, 1, v->dtype);
}

static inline int64_t fe_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/* Compute a parameter's norms from the sums of its blocks. */
static void fe_add_blocks(const double *sums, int64_t blocks, fe_numbers *u) {
    double w = 0, g = 0;
    for (int64_t i = 0; i < blocks; i++) {
        w += sums[2 * i];
        g += sums[2 * i + 1];
    }
    u->w_norm = sqrt(w);
    u->g_norm = sqrt(g);
}

/* Run one pass over all parameters. Rules with norms split work by whole blocks, whose sums are in scratch:
 * the first pass writes the sums, the second reads them. */
static void fe_sweep(const fe_rule *rule, const fe_call *call, const fe_team *team, fe_numbers u, int first) {
    const int size = rule->members, groups = (call->nin - 2) / size;
    const int64_t unit = rule->norms ? FE_BLOCK : 1;
    const double lr = u.lr;
    double *sums = (double *)call->work;
    int64_t total = 0, lo, hi, at = 0;
    for (int k = 0; k < groups; k++) total += fe_up(fe_numel(&call->args[2 + k * size]), unit);
    fe_split(total, rule->norms ? FE_BLOCK : 64, team, &lo, &hi);
    for (int k = 0; k < groups; k++) {
        const fe_view *group = &call->args[2 + k * size];
        const double *own = call->reals + 4 + 3 * k;                       /* weight decay, l1, l2 */
        const int64_t n = fe_numel(group);
        if (lo < at + n && hi > at) {
            u.lr = lr;
            u.l1 = own[1];
            u.l2 = own[2];
            if (rule->norms && !first) fe_add_blocks(sums + at / FE_BLOCK * 2, fe_up(n, FE_BLOCK) / FE_BLOCK, &u);
            if (rule->each) rule->each(&u, group, own[0]);
            u.decay = u.lr * own[0];
            const int64_t stop = hi - at < n ? hi - at : n;
            for (int64_t i = lo > at ? lo - at : 0, end; i < stop; i = end) {
                end = first && i + FE_BLOCK < stop ? i + FE_BLOCK : stop;
                fe_part(first ? rule->norms : rule->loop, size - rule->single, group, i, end, &u);
                if (first) {
                    sums[(at + i) / FE_BLOCK * 2] = u.w_square;
                    sums[(at + i) / FE_BLOCK * 2 + 1] = u.g_square;
                    u.w_square = u.g_square = 0;
                }
            }
        }
        at += fe_up(n, unit);
    }
}

static int fe_update(const fe_rule *rule, fe_call *call, const fe_team *team) {
    const int64_t step = fe_index(&call->args[1], 0);
    if (step < 0) return FE_OK;                                            /* this step is skipped */
    const double *r = call->reals;
    fe_numbers u = {.lr = fe_number(&call->args[0]), .scale = r[0], .beta1 = r[1], .beta2 = r[2], .epsilon = r[3],
                    .c1 = 1, .c2 = 1, .flag = (int)call->ints[0]};
    if (rule->begin) rule->begin(&u, (double)(step + 1));
    if (rule->norms) {
        fe_sweep(rule, call, team, u, 1);
        fe_wait(team);
    }
    fe_sweep(rule, call, team, u, 0);
    if (rule->end) {
        fe_wait(team);                                                     /* all threads have read it */
        for (int i = 2; team->tid == 0 && i < call->nin; i += rule->members) rule->end(&u, &call->args[i]);
    }
    return FE_OK;
}

/* Scratch of rules with norms: two sums for each block of each parameter. */
static int64_t fe_norms_work(const fe_rule *rule, const fe_call *call) {
    int64_t n = 0;
    for (int i = 2; i < call->nin; i += rule->members) n += fe_up(fe_numel(&call->args[i]), FE_BLOCK);
    return 16 * (n / FE_BLOCK);
}
#endif
