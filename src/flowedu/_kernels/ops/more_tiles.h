/* What core/tiles.h has beside its own: tiles of 16-bit floats, and vector code in the place of plain tiles: the later row
 * of a name is the one in use. Vector code is right only if it is compiled as it is written (setup.py: ORDERED). */
#include "half_tiles.h"
#if defined(FE_IN_ORDER) && __has_include("vector_tiles.h")
#include "vector_tiles.h"
#else
#define FE_FAST_ROWS
#endif
#define FE_MORE_ROWS FE_HALF_ROWS FE_FAST_ROWS
