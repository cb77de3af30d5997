/* argsort and top_k along rows: a merge sort of positions, where every element computes its own position.
 *
 * Runs of `width` positions are sorted, and pairs of adjacent runs are merged. A binary search counts the elements of the
 * other run that precede an element. Equal elements precede an element of the right run, but not one of the left run, so
 * both orders are stable. A NaN counts as the largest element. */
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
        while (low < high) {                                  /* how many of the other run come first */
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
