/* y[r, c] = x[r, c + 1] - x[r, c], for x (rows, cols) and y (rows, cols - 1). A block has 16 x 16 threads.
 * Launch for 1 row of 20 columns: kernels("difference", grid=(2, 1), block=(16, 16))(1, 20, x, y). */
extern "C" __global__ void difference(long long rows, long long cols, const float *x, float *y) {
    long long row = (long long)blockIdx.y * blockDim.y + threadIdx.y;
    long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < cols)
        y[row * (cols - 1) + column] = x[row * cols + column + 1] - x[row * cols + column];
}
