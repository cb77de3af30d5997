/* Neighbouring threads must use neighbouring columns, because the elements of a row are neighbours in memory. With
 * row = i % rows they use neighbouring rows, so a warp reads 32 sectors where 4 are enough. */
/* y[r, c] = x[r, c] * scale[r] + shift[c], for x (rows, cols). Each thread computes one element. */
extern "C" __global__ void affine(long long rows, long long cols, const float *x, const float *scale,
                                  const float *shift, float *y) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long row = i / cols;
    long long column = i % cols;
    if (i < rows * cols)
        y[row * cols + column] = x[row * cols + column] * scale[row] + shift[column];
}
