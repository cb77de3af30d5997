/* The interface between the engine (eager dispatch, plan executor) and CPU kernels.
 *
 * A kernel is one C function. Every thread of a team calls it with the same `call` and its own
 * `team`. The kernel splits its work by (tid, nt); fe_wait(team) is a barrier. A kernel writes only
 * to the output views and to call->work. It must not allocate memory, print, or use Python.
 */
#ifndef FLOWEDU_ABI_H
#define FLOWEDU_ABI_H
#include <stdint.h>
#include <stddef.h>
#if defined(_OPENMP)
#include <omp.h>
#endif
#include <sched.h>

#define FE_MAX_DIM 8

/* Dtype codes, the same as in core/values/dtype.py. Plans contain them, so they must not change. */
enum { FE_F32, FE_F64, FE_I32, FE_I64, FE_I8, FE_U8, FE_BOOL, FE_F16, FE_BF16, FE_I16, FE_NDTYPE };
static const int fe_item[] = {4, 8, 4, 8, 1, 1, 1, 2, 2, 2}; /* bytes of an element */

/* Status codes, from which the engine makes errors. FE_PYTHON: `detail` points to an exception. */
enum { FE_OK = 0, FE_BAD_INDEX = 1, FE_PYTHON = 2 };

typedef struct {
    char *data;                  /* address of element [0, 0, ...] */
    int32_t dtype;
    int32_t ndim;
    int64_t shape[FE_MAX_DIM];
    int64_t stride[FE_MAX_DIM];  /* in elements, not bytes; 0 for a broadcast axis */
} fe_view;

typedef struct {
    volatile int arrived;
    volatile int phase;
    volatile int fail;  /* first status that is not FE_OK */
    volatile int stop;  /* `fail` at the last barrier, so that all threads read the same value */
    char pad[48];
} fe_barrier;

typedef struct {
    int tid, nt;
    fe_barrier *barrier;
} fe_team;

typedef struct fe_call fe_call;
/* Kernels do not read `tag`. Its type selects the version of a fused Cython function. */
typedef int (*fe_kernel)(fe_call *, const fe_team *, void *tag);
typedef int64_t (*fe_work)(const fe_call *, int nt); /* bytes of scratch the kernel needs */

struct fe_call {
    fe_kernel fn;
    fe_view *args;         /* inputs first, then outputs */
    int32_t nin, nargs;
    const int64_t *ints;   /* attributes, in the order of the record's `pack` */
    const double *reals;
    char *work;            /* scratch, 64-byte aligned */
    const void *extra;     /* elementwise programs */
    int64_t detail;        /* the invalid value, or the exception of FE_PYTHON */
    int32_t parallel;      /* 0: only thread 0 runs it */
    int32_t node;          /* index into the plan, for messages */
    int32_t kept;          /* true if `work` still has the values of an earlier run */
};

/* Barrier of the team. A thread spins briefly, then yields, because the machine may be shared. */
static inline void fe_wait(const fe_team *t) {
    if (t->nt == 1) return;
    fe_barrier *b = t->barrier;
    int phase = __atomic_load_n(&b->phase, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&b->arrived, 1, __ATOMIC_ACQ_REL) == t->nt) {
        __atomic_store_n(&b->arrived, 0, __ATOMIC_RELAXED);
        b->stop = b->fail;
        __atomic_store_n(&b->phase, phase + 1, __ATOMIC_RELEASE);
        return;
    }
    int spins = 0;
    while (__atomic_load_n(&b->phase, __ATOMIC_ACQUIRE) == phase) {
        if (++spins < 1000) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        } else sched_yield();
    }
}

/* Set [lo, hi) to this thread's part of n items. Parts differ by at most one `grain`. */
static inline void fe_split(int64_t n, int64_t grain, const fe_team *t, int64_t *lo, int64_t *hi) {
    int64_t blocks = (n + grain - 1) / grain;
    int64_t q = blocks / t->nt, r = blocks % t->nt, id = t->tid;
    int64_t a = id * q + (id < r ? id : r), b = a + q + (id < r ? 1 : 0);
    *lo = a * grain < n ? a * grain : n;
    *hi = b * grain < n ? b * grain : n;
}

static inline int64_t fe_numel(const fe_view *v) {
    int64_t n = 1;
    for (int i = 0; i < v->ndim; i++) n *= v->shape[i];
    return n;
}

/* Return the offset, in elements, of element i in row-major order. */
static inline int64_t fe_place(const fe_view *v, int64_t i) {
    int64_t at = 0;
    for (int d = v->ndim - 1; d >= 0; d--) {
        at += i % v->shape[d] * v->stride[d];
        i /= v->shape[d];
    }
    return at;
}

/* Return element i of a contiguous array of labels or indices. */
static inline int64_t fe_index(const fe_view *v, int64_t i) {
    switch (v->dtype) {
    case FE_I32: return ((const int32_t *)v->data)[i];
    case FE_I64: return ((const int64_t *)v->data)[i];
    case FE_I8: return ((const int8_t *)v->data)[i];
    case FE_I16: return ((const int16_t *)v->data)[i];
    default: return ((const uint8_t *)v->data)[i];
    }
}
#endif
