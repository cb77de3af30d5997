/* Tiles that core/tiles.h includes: tiles of 16-bit floats, and vector code that replaces plain tiles,
 * because the later row of a name is used. Vector code is correct only if it is compiled as written
 * (setup.py: ORDERED). */
#include "half_tiles.h"
#if defined(FE_IN_ORDER) && __has_include("vector_tiles.h")
#include "vector_tiles.h"
#else
#define FE_FAST_ROWS
#endif
#define FE_MORE_ROWS FE_HALF_ROWS FE_FAST_ROWS
