/* argsort and top_k along rows: a merge sort of positions, in which every element finds its own place.
 *
 * Runs of `width` positions are sorted; two neighbours become one. An element of the left run comes behind all of the right
 * run that must stand before it, one of the right run behind all of the left run that need not stand behind it: how many
 * these are, a binary search tells. So both orders are stable: of equal elements the first comes first. A NaN counts as the
 * largest element. */
#include "view.h"

__device__ __forceinline__ bool before(T a, T b, index_t down) {
    if (down) return a > b || (a != a && b == b);
    return a < b || (b != b && a == a);
}

extern "C" __global__ void sort_start(index_t total, index_t n, int32_t *at) {
    for (EACH(i, total)) at[i] = (int32_t)(i % n);
}

extern "C" __global__ void sort_merge(index_t total, index_t n, index_t width, index_t down, const T *x,
                                      const int32_t *from, int32_t *to) {
    for (EACH(i, total)) {
        const index_t row = i / n * n, p = i - row, pair = p / (2 * width) * 2 * width;
        const bool left = p - pair < width;
        const index_t middle = min(pair + width, n), end = min(pair + 2 * width, n);
        const T own = x[row + from[i]];
        index_t low = left ? middle : pair, high = left ? end : middle;
        const index_t first = low;
        while (low < high) {                                  /* how many of the other run stand before it */
            const index_t m = (low + high) / 2;
            const T other = x[row + from[row + m]];
            if (left ? before(other, own, down) : !before(own, other, down)) low = m + 1;
            else high = m;
        }
        to[row + (left ? p : p - (middle - pair)) + (low - first)] = from[i];
    }
}

/* The first k of every sorted row. */
extern "C" __global__ void sort_take(index_t total, index_t n, index_t k, const int32_t *from, int32_t *y) {
    for (EACH(i, total)) y[i] = from[i / k * n + i % k];
}
