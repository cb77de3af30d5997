/* Tile functions: one short loop per formula and type, over contiguous operands. elementwise.pyx
 * splits every call (broadcast, strided, or fused) into tiles that fit in the L1 cache.
 */
#ifndef FLOWEDU_TILES_H
#define FLOWEDU_TILES_H
#include <stdint.h>
#include "abi.h"
#include "formulas.h"

typedef void (*fe_tile)(int64_t n, void *out, const void *a, const void *b, const void *c);

typedef struct {
    const char *name;
    int in, out; /* dtype codes (for where: `in` is the type of all operands but the first, int8) */
    int arity;
    fe_tile fn;
} fe_tile_entry;

/* `out` may be one of the operands (in place), but must not overlap them otherwise (ivdep). */
#define FE_LOOP(body) _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) { body; }

#define FE_ARGS int64_t n, void *o_, const void *a_, const void *b_, const void *c_
#define FE_TILE1(name, formula, tag, ctype, code)                                                \
    static void tile_##name##_##tag(FE_ARGS) {                                                   \
        typedef ctype T; T *o = (T *)o_; const T *pa = (const T *)a_;                            \
        FE_LOOP(const T a = pa[i]; o[i] = (T)(formula))                                          \
    }
#define FE_TILE_TO(otype, name, formula, tag, ctype)                                             \
    static void tile_##name##_##tag(FE_ARGS) {                                                   \
        typedef ctype T; otype *o = (otype *)o_; const T *pa = (const T *)a_, *pb = (const T *)b_; \
        FE_LOOP(const T a = pa[i]; const T b = pb[i]; o[i] = (otype)(formula))                   \
    }
#define FE_TILE2(name, formula, tag, ctype, code) FE_TILE_TO(ctype, name, formula, tag, ctype)
#define FE_TILE_COMPARE(name, formula, tag, ctype, _) FE_TILE_TO(int8_t, name, formula, tag, ctype)
#define FE_TILE_WHERE(tag, ctype)                                                                \
    static void tile_where_##tag(FE_ARGS) {                                                      \
        ctype *o = (ctype *)o_; const int8_t *pa = (const int8_t *)a_;                           \
        const ctype *pb = (const ctype *)b_, *pc = (const ctype *)c_;                            \
        FE_LOOP(o[i] = pa[i] ? pb[i] : pc[i])                                                    \
    }

/* One line per group of types: D(name, formula, tag, C type, code). */
#define FE_REALS(D, n, f) D(n, f, f32, float, FE_F32) D(n, f, f64, double, FE_F64)
#define FE_WHOLES(D, n, f) D(n, f, i32, int32_t, FE_I32) D(n, f, i64, int64_t, FE_I64) \
    D(n, f, i8, int8_t, FE_I8) D(n, f, u8, uint8_t, FE_U8) D(n, f, i16, int16_t, FE_I16)
#define FE_NUMBERS(D, n, f) FE_REALS(D, n, f) FE_WHOLES(D, n, f)

#define X1F(n, f) FE_REALS(FE_TILE1, n, f)
#define X1A(n, f) FE_NUMBERS(FE_TILE1, n, f)
#define X2F(n, f) FE_REALS(FE_TILE2, n, f)
#define X2I(n, f) FE_WHOLES(FE_TILE2, n, f)
#define X2A(n, f) FE_NUMBERS(FE_TILE2, n, f)
#define XCMP(n, f) FE_NUMBERS(FE_TILE_COMPARE, n, f)

FE_UNARY_ANY(X1A)
FE_UNARY_REAL(X1F)
FE_BINARY_ANY(X2A)
FE_BINARY_REAL(X2F)
FE_BINARY_INT(X2I)
FE_COMPARE(XCMP)
FE_TILE_WHERE(f32, float)
FE_TILE_WHERE(f64, double)
FE_TILE_WHERE(i32, int32_t)
FE_TILE_WHERE(i64, int64_t)
FE_TILE_WHERE(i8, int8_t)
#if __has_include("more_tiles.h")
#include "more_tiles.h" /* 16-bit floats, and vector code that replaces some of these tiles */
#else
#define FE_MORE_ROWS
#endif

#define E1(n, f, tag, ctype, code) {#n, code, code, 1, tile_##n##_##tag},
#define E2(n, f, tag, ctype, code) {#n, code, code, 2, tile_##n##_##tag},
#define E2C(n, f, tag, ctype, code) {#n, code, FE_I8, 2, tile_##n##_##tag},
#define E2B(n, f, tag, ctype, code) {#n, code, FE_BOOL, 2, tile_##f##_##tag},
#define E1F(n, f) FE_REALS(E1, n, f)
#define E1A(n, f) FE_NUMBERS(E1, n, f)
#define E2F(n, f) FE_REALS(E2, n, f)
#define E2I(n, f) FE_WHOLES(E2, n, f)
#define E2A(n, f) FE_NUMBERS(E2, n, f)
#define ECMP(n, f) FE_NUMBERS(E2C, n, f)
/* A bool is a byte that is 0 or 1, so bools use the int8 functions. */
#define EBOOL(n, f) FE_NUMBERS(E2B, n, f) {#n, FE_BOOL, FE_BOOL, 2, tile_##f##_i8},

static const fe_tile_entry FE_TILES[] = {
    FE_UNARY_ANY(E1A) FE_UNARY_REAL(E1F) FE_BINARY_ANY(E2A) FE_BINARY_REAL(E2F) FE_BINARY_INT(E2I)
    FE_COMPARE(ECMP) FE_COMPARE_BOOL(EBOOL)
    {"where", FE_F32, FE_F32, 3, tile_where_f32}, {"where", FE_F64, FE_F64, 3, tile_where_f64},
    {"where", FE_I32, FE_I32, 3, tile_where_i32}, {"where", FE_I64, FE_I64, 3, tile_where_i64},
    {"where", FE_I8, FE_I8, 3, tile_where_i8}, {"where", FE_U8, FE_U8, 3, tile_where_i8},
    {"where", FE_BOOL, FE_BOOL, 3, tile_where_i8}, FE_MORE_ROWS
};
enum { FE_NTILES = sizeof(FE_TILES) / sizeof(FE_TILES[0]) };

/* A fused elementwise program: a list of tile calls over numbered slots. Slots 0..nin-1 are the
 * inputs; constants and temporaries follow. Each output is a slot that an instruction writes. */
enum { FE_MAX_SLOTS = 32, FE_TILE_BYTES = 4096 };

typedef struct {
    fe_tile fn;
    int16_t out, a, b, c; /* slots; -1: none */
} fe_instr;

typedef struct {
    int32_t ninstr, nslots, nconst, nout;
    fe_instr instr[FE_MAX_SLOTS];
    int32_t item[FE_MAX_SLOTS];       /* bytes per element of each slot */
    int16_t const_slot[FE_MAX_SLOTS];
    char const_value[FE_MAX_SLOTS][8]; /* in the type of the slot */
    int16_t out_slot[FE_MAX_SLOTS];
} fe_program;
#define FE_CONST(p, i) ((p)->const_value[i])
#endif
