"""Correct kernels, with the same results for every order of threads."""

SGEMM = """
#define TILE 16
__global__ void naive(const float* a, const float* b, float* c, int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || col >= n) return;
    float sum = 0;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}
__global__ void tiled(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < k; t += TILE) {
        int i = t + threadIdx.x, j = t + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < m && i < k ? a[row * k + i] : 0;
        bs[threadIdx.y][threadIdx.x] = j < k && col < n ? b[j * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = sum;
}"""

ROWS = """
__device__ float warp_sum(float v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    return v;
}
__device__ float warp_max(float v) {
    for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
    return v;
}
__global__ void row_sum(const float* x, float* out, int cols) {
    extern __shared__ float part[];
    float v = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) v += x[blockIdx.x * cols + c];
    v = warp_sum(v);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) part[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = warp_sum(lane < blockDim.x / 32 ? part[lane] : 0);
        if (lane == 0) out[blockIdx.x] = v;
    }
}
__global__ void softmax(const float* x, float* y, int cols) {
    __shared__ float part[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    x += blockIdx.x * cols, y += blockIdx.x * cols;
    float m = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) m = fmaxf(m, x[c]);
    m = warp_max(m);
    if (lane == 0) part[warp] = m;
    __syncthreads();
    for (int i = 0; i < warps; ++i) m = fmaxf(m, part[i]);
    __syncthreads();
    for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += __expf(x[c] - m);
    sum = __shfl_sync(0xffffffffu, warp_sum(sum), 0);
    if (lane == 0) part[warp] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < warps; ++i) sum += part[i];
    for (int c = threadIdx.x; c < cols; c += blockDim.x) y[c] = __expf(x[c] - m) / sum;
}"""

HISTOGRAM = """
__global__ void histogram(const int* x, unsigned int* bins, int n, int nb) {
    extern __shared__ unsigned int own[];
    for (int i = threadIdx.x; i < nb; i += blockDim.x) own[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[x[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < nb; i += blockDim.x) atomicAdd(&bins[i], own[i]);
}"""

TRANSPOSE = """
template <int PAD> __global__ void transpose(const float* x, float* y, int rows, int cols) {
    __shared__ float tile[32][32 + PAD];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = x[r * cols + c];
    __syncthreads();
    int tr = blockIdx.x * 32 + threadIdx.y, tc = blockIdx.y * 32 + threadIdx.x;
    if (tr < cols && tc < rows) y[tr * rows + tc] = tile[threadIdx.x][threadIdx.y];
}
template __global__ void transpose<0>(const float*, float*, int, int);
template __global__ void transpose<1>(const float*, float*, int, int);"""

# The last block that is done adds up what all blocks have written: fences and an atomic operation order them.
LAST_BLOCK = """
__device__ unsigned int done;
__global__ void sum(const float* x, float* part, float* out, int n) {
    __shared__ float s[64];
    __shared__ bool last;
    float v = 0;
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) v += x[i];
    s[threadIdx.x] = v;
    for (int d = 32; d > 0; d /= 2) {
        __syncthreads();
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    }
    if (threadIdx.x == 0) {
        part[blockIdx.x] = s[0];
        __threadfence();
        last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        v = 0;
        for (int b = 0; b < gridDim.x; ++b) v += part[b];
        out[0] = v;
    }
}"""
