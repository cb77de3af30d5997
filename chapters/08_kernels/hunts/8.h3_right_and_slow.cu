/* y[r, c] = x[r, c] * scale[r] + shift[c], for x (rows, cols). Each thread computes one element.
 * Launch for 64 rows of 96 columns: kernels("affine", grid=24, block=256)(64, 96, x, scale, shift, y). */
extern "C" __global__ void affine(long long rows, long long cols, const float *x, const float *scale,
                                  const float *shift, float *y) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long row = i % rows;
    long long column = i / rows;
    if (i < rows * cols)
        y[row * cols + column] = x[row * cols + column] * scale[row] + shift[column];
}
