/* y = a w, for a (rows, n) and w (n). A block of 64 threads computes 64 elements of y.
 * Launch for 70 rows: kernels("product", grid=2, block=64)(70, n, a, w, y). */
extern "C" __global__ void product(long long rows, long long n, const float *a, const float *w, float *y) {
    __shared__ float tile[64];
    long long row = (long long)blockIdx.x * 64 + threadIdx.x;
    float sum = 0;
    for (long long start = 0; start < n; start += 64) {
        long long column = start + threadIdx.x;
        tile[threadIdx.x] = column < n ? w[column] : 0;
        __syncthreads();
        long long count = n - start < 64 ? n - start : 64;
        for (long long k = 0; k < count; k++)
            if (row < rows) sum += a[row * n + start + k] * tile[k];
    }
    if (row < rows) y[row] = sum;
}
