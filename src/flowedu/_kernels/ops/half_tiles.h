/* Tiles of 16-bit floats: conversions to and from float32, and `where`, which only selects 16 bits and so
 * also works for integers. (Part of more_tiles.h.) */
#include "halves.h"

#define FE_TILE_CONVERT(name, from, to, f)                                                               \
    static void tile_##name(int64_t n, void *o_, const void *a_, const void *b_, const void *c_) {       \
        to *o = (to *)o_; const from *pa = (const from *)a_;                                             \
        f(pa, o, n);                                                                                     \
    }

FE_TILE_WHERE(i16, int16_t)
FE_TILE_CONVERT(from_f16, fe_half, float, fe_widen_f16)
FE_TILE_CONVERT(to_f16, float, fe_half, fe_round_f16)
FE_TILE_CONVERT(from_bf16, fe_bf16, float, fe_widen_bf16)
FE_TILE_CONVERT(to_bf16, float, fe_bf16, fe_round_bf16)

#if defined(__FLT16_MAX__)
#define FE_F16_ROWS {"widen", FE_F16, FE_F32, 1, tile_from_f16}, {"float16", FE_F32, FE_F16, 1, tile_to_f16},
#else
#define FE_F16_ROWS
#endif
#define FE_HALF_ROWS                                                                                     \
    {"where", FE_F16, FE_F16, 3, tile_where_i16}, {"where", FE_BF16, FE_BF16, 3, tile_where_i16},        \
    {"where", FE_I16, FE_I16, 3, tile_where_i16},                                                        \
    {"widen", FE_BF16, FE_F32, 1, tile_from_bf16}, {"bfloat16", FE_F32, FE_BF16, 1, tile_to_bf16}, FE_F16_ROWS
