"""Answers to the exercises of chapter 8."""


def running_sums():
    return """
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *

cdef int running_sums(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *x = <const float *>call.args[0].data
    cdef float *y = <float *>call.args[1].data
    cdef int64_t n = call.args[0].shape[1], r, j, lo, hi
    cdef double total
    fe_split(call.args[0].shape[0], 1, team, &lo, &hi)
    for r in range(lo, hi):
        total = 0
        for j in range(n):
            total += x[r * n + j]
            y[r * n + j] = <float>total
    return FE_OK

address = <size_t><void *>running_sums
"""


def guard():
    return """
__global__ void add(const float *x, const float *y, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}"""


def row_sums():
    return """
__global__ void row_sums(const float *x, float *out, int n) {
    __shared__ float part[2];
    float sum = 0;
    for (int j = threadIdx.x; j < n; j += 64) sum += x[blockIdx.x * n + j];
    for (int k = 16; k; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = part[0] + part[1];
}"""


def softmax_rows():
    return """
__device__ float joined(float v, bool largest, float *part) {
    for (int k = 16; k; k /= 2) {
        float other = __shfl_xor_sync(~0u, v, k);
        v = largest ? fmaxf(v, other) : v + other;
    }
    __syncthreads();                                    // nobody reads the last one's parts any more
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    return largest ? fmaxf(part[0], part[1]) : part[0] + part[1];
}
__global__ void softmax_rows(const float *x, float *y, int n) {
    __shared__ float part[2];
    x += blockIdx.x * n, y += blockIdx.x * n;
    float top = -INFINITY, sum = 0;
    for (int j = threadIdx.x; j < n; j += 64) top = fmaxf(top, x[j]);
    top = joined(top, true, part);
    for (int j = threadIdx.x; j < n; j += 64) sum += expf(x[j] - top);
    sum = joined(sum, false, part);
    for (int j = threadIdx.x; j < n; j += 64) y[j] = expf(x[j] - top) / sum;
}"""


def transpose():
    return """
__global__ void transpose(const float *x, float *y, int rows, int cols) {
    __shared__ float tile[32][33];                      // one column more: a column lies in 32 banks
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = x[r * cols + c];
    __syncthreads();
    c = blockIdx.x * 32 + threadIdx.y, r = blockIdx.y * 32 + threadIdx.x;
    if (r < rows && c < cols) y[c * rows + r] = tile[threadIdx.x][threadIdx.y];
}"""


def tiled_product():
    return """
__global__ void product(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float as[16][16], bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int t = 0; t < k; t += 16) {
        as[ty][tx] = row < m && t + tx < k ? a[row * k + t + tx] : 0;
        bs[ty][tx] = t + ty < k && col < n ? b[(t + ty) * n + col] : 0;
        __syncthreads();                                // the tiles are full
        for (int i = 0; i < 16; i++) sum += as[ty][i] * bs[i][tx];
        __syncthreads();                                // nobody needs them any more
    }
    if (row < m && col < n) c[row * n + col] = sum;
}"""
