/* y has one column less than x, so the last column of x has no thread. With column < cols, the thread of this column writes
 * the first element of the next row of y, and reads beyond the end of x in the last row. */
/* y[r, c] = x[r, c + 1] - x[r, c], for x (rows, cols) and y (rows, cols - 1). A block has 16 x 16 threads. */
extern "C" __global__ void difference(long long rows, long long cols, const float *x, float *y) {
    long long row = (long long)blockIdx.y * blockDim.y + threadIdx.y;
    long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < cols - 1)
        y[row * (cols - 1) + column] = x[row * cols + column + 1] - x[row * cols + column];
}
