/* Tile functions: one short loop per formula and type, over contiguous operands. The elementwise engine
 * (elementwise.pyx) cuts any call, broadcast, strided or fused, into such tiles, small enough to stay in the L1 cache.
 */
#ifndef FLOWEDU_TILES_H
#define FLOWEDU_TILES_H
#include <stdint.h>
#include "abi.h"
#include "formulas.h"
#include "halves.h"

typedef void (*fe_tile)(int64_t n, void *out, const void *a, const void *b, const void *c);

typedef struct {
    const char *name;
    int in, out; /* dtype codes; where: the first operand is int8 and `in` the type of the others */
    int arity;
    fe_tile fn;
} fe_tile_entry;

/* out may be one of the operands (in place), never overlap them otherwise: ivdep says so. */
#define FE_LOOP(body) _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) { body; }

#define FE_TILE1(tag, ctype, name, formula)                                                              \
    static void tile_##name##_##tag(int64_t n, void *o_, const void *a_, const void *b_, const void *c_) { \
        typedef ctype T; T *o = (T *)o_; const T *pa = (const T *)a_;                                    \
        FE_LOOP(const T a = pa[i]; o[i] = (T)(formula))                                                  \
    }
#define FE_TILE2(tag, ctype, otype, name, formula)                                                       \
    static void tile_##name##_##tag(int64_t n, void *o_, const void *a_, const void *b_, const void *c_) { \
        typedef ctype T; otype *o = (otype *)o_; const T *pa = (const T *)a_, *pb = (const T *)b_;       \
        FE_LOOP(const T a = pa[i]; const T b = pb[i]; o[i] = (otype)(formula))                           \
    }
#define FE_TILE_WHERE(tag, ctype)                                                                        \
    static void tile_where_##tag(int64_t n, void *o_, const void *a_, const void *b_, const void *c_) {  \
        ctype *o = (ctype *)o_; const int8_t *pa = (const int8_t *)a_;                                   \
        const ctype *pb = (const ctype *)b_, *pc = (const ctype *)c_;                                    \
        FE_LOOP(o[i] = pa[i] ? pb[i] : pc[i])                                                            \
    }

/* Between a 16-bit float and the float32 it is computed in. */
#define FE_TILE_CONVERT(name, from, to, f)                                                               \
    static void tile_##name(int64_t n, void *o_, const void *a_, const void *b_, const void *c_) {       \
        to *o = (to *)o_; const from *pa = (const from *)a_;                                             \
        f(pa, o, n);                                                                                     \
    }

#define X1F(name, f) FE_TILE1(f32, float, name, f) FE_TILE1(f64, double, name, f)
#define X1I(name, f) FE_TILE1(i32, int32_t, name, f) FE_TILE1(i64, int64_t, name, f) \
    FE_TILE1(i8, int8_t, name, f) FE_TILE1(u8, uint8_t, name, f)
#define X1A(name, f) X1F(name, f) X1I(name, f)
#define X2F(name, f) FE_TILE2(f32, float, float, name, f) FE_TILE2(f64, double, double, name, f)
#define X2I(name, f) FE_TILE2(i32, int32_t, int32_t, name, f) FE_TILE2(i64, int64_t, int64_t, name, f) \
    FE_TILE2(i8, int8_t, int8_t, name, f) FE_TILE2(u8, uint8_t, uint8_t, name, f)
#define X2A(name, f) X2F(name, f) X2I(name, f)
#define XCMP(name, f) FE_TILE2(f32, float, int8_t, name, f) FE_TILE2(f64, double, int8_t, name, f)  \
    FE_TILE2(i32, int32_t, int8_t, name, f) FE_TILE2(i64, int64_t, int8_t, name, f)                 \
    FE_TILE2(i8, int8_t, int8_t, name, f) FE_TILE2(u8, uint8_t, int8_t, name, f)

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
FE_TILE_WHERE(i16, int16_t)
FE_TILE_CONVERT(from_f16, fe_half, float, fe_widen_f16)
FE_TILE_CONVERT(to_f16, float, fe_half, fe_round_f16)
FE_TILE_CONVERT(from_bf16, fe_bf16, float, fe_widen_bf16)
FE_TILE_CONVERT(to_bf16, float, fe_bf16, fe_round_bf16)

#define E1F(n, f) {#n, FE_F32, FE_F32, 1, tile_##n##_f32}, {#n, FE_F64, FE_F64, 1, tile_##n##_f64},
#define E1I(n, f) {#n, FE_I32, FE_I32, 1, tile_##n##_i32}, {#n, FE_I64, FE_I64, 1, tile_##n##_i64},  \
    {#n, FE_I8, FE_I8, 1, tile_##n##_i8}, {#n, FE_U8, FE_U8, 1, tile_##n##_u8},
#define E1A(n, f) E1F(n, f) E1I(n, f)
#define E2F(n, f) {#n, FE_F32, FE_F32, 2, tile_##n##_f32}, {#n, FE_F64, FE_F64, 2, tile_##n##_f64},
#define E2I(n, f) {#n, FE_I32, FE_I32, 2, tile_##n##_i32}, {#n, FE_I64, FE_I64, 2, tile_##n##_i64},  \
    {#n, FE_I8, FE_I8, 2, tile_##n##_i8}, {#n, FE_U8, FE_U8, 2, tile_##n##_u8},
#define E2A(n, f) E2F(n, f) E2I(n, f)
#define ECMP(n, f) {#n, FE_F32, FE_I8, 2, tile_##n##_f32}, {#n, FE_F64, FE_I8, 2, tile_##n##_f64},  \
    {#n, FE_I32, FE_I8, 2, tile_##n##_i32}, {#n, FE_I64, FE_I8, 2, tile_##n##_i64},                 \
    {#n, FE_I8, FE_I8, 2, tile_##n##_i8}, {#n, FE_U8, FE_I8, 2, tile_##n##_u8},
/* A bool is a byte that is 0 or 1: the int8 functions serve. */
#define EBOOL(n, f) {#n, FE_F32, FE_BOOL, 2, tile_##f##_f32}, {#n, FE_F64, FE_BOOL, 2, tile_##f##_f64},  \
    {#n, FE_I32, FE_BOOL, 2, tile_##f##_i32}, {#n, FE_I64, FE_BOOL, 2, tile_##f##_i64},                  \
    {#n, FE_I8, FE_BOOL, 2, tile_##f##_i8}, {#n, FE_U8, FE_BOOL, 2, tile_##f##_u8},                      \
    {#n, FE_BOOL, FE_BOOL, 2, tile_##f##_i8},

static const fe_tile_entry FE_TILES[] = {
    FE_UNARY_ANY(E1A) FE_UNARY_REAL(E1F) FE_BINARY_ANY(E2A) FE_BINARY_REAL(E2F) FE_BINARY_INT(E2I) FE_COMPARE(ECMP)
    FE_COMPARE_BOOL(EBOOL)
    {"where", FE_F32, FE_F32, 3, tile_where_f32}, {"where", FE_F64, FE_F64, 3, tile_where_f64},
    {"where", FE_I32, FE_I32, 3, tile_where_i32}, {"where", FE_I64, FE_I64, 3, tile_where_i64},
    {"where", FE_I8, FE_I8, 3, tile_where_i8}, {"where", FE_U8, FE_U8, 3, tile_where_i8},
    {"where", FE_BOOL, FE_BOOL, 3, tile_where_i8}, {"where", FE_F16, FE_F16, 3, tile_where_i16},
    {"where", FE_BF16, FE_BF16, 3, tile_where_i16},
    {"widen", FE_BF16, FE_F32, 1, tile_from_bf16}, {"bfloat16", FE_F32, FE_BF16, 1, tile_to_bf16},
#if defined(__FLT16_MAX__)
    {"widen", FE_F16, FE_F32, 1, tile_from_f16}, {"float16", FE_F32, FE_F16, 1, tile_to_f16},
#endif
};
enum { FE_NTILES = sizeof(FE_TILES) / sizeof(FE_TILES[0]) };

/* A fused elementwise program: a flat list of tile calls over numbered slots.
 * Slots 0..nin-1 are the inputs; consts and temporaries follow; each output is a slot some instruction writes. */
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
    char const_value[FE_MAX_SLOTS][8]; /* already in the slot's type */
    int16_t out_slot[FE_MAX_SLOTS];
} fe_program;
#define FE_CONST(p, i) ((p)->const_value[i])
#endif
