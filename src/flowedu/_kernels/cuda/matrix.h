/* Operands and result of a matrix product (product.h) that are matrices in memory. */
#ifndef FLOWEDU_CUDA_MATRIX_H
#define FLOWEDU_CUDA_MATRIX_H
#include "product.h"

struct Matrix {                    /* as A: row i, step k; as B: column i, step k */
    typedef index_t Place;
    const T *data;
    index_t i_step, k_step;
    bool along_k;
    __device__ __forceinline__ Matrix(const T *data, index_t i_step, index_t k_step)
        : data(data), i_step(i_step), k_step(k_step), along_k(k_step == 1) {}
    __device__ __forceinline__ Place place(index_t i) const { return i * i_step; }
    __device__ __forceinline__ T at(Place p, index_t k) const { return data[p + k * k_step]; }
};

struct Store {
    T *data;
    index_t cols;
    __device__ __forceinline__ void put(index_t row, index_t col, T v) const { data[row * cols + col] = v; }
};
#endif
