// CUDA C for g++: the built-in names of nvcc. Included before the user's source.
#pragma once
#include "host.h"
#include "machine.h"

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __CUDASIM__ 1

#define __global__ CUDASIM_OUT_OF_LINE __attribute__((visibility("default"), used))
#define __device__
#define __host__
#define __managed__
#define __constant__ __attribute__((section("cudasim_constant")))
#define __restrict__ __restrict
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))      // may be anywhere in a declaration

// Shared memory is static, as one block runs at a time. With hooks, a gap precedes each array, so that an
// index out of range does not reach another array.
#ifdef CUDASIM_CHECKED
#define CUDASIM_JOIN_(a, b) a##b
#define CUDASIM_JOIN(a, b) CUDASIM_JOIN_(a, b)
#define __shared__                                                                                                   \
    static __attribute__((used)) char CUDASIM_JOIN(cudasim_gap, __COUNTER__)[64];                                    \
    static
#define threadIdx (cudasim_thread_idx())
#define blockIdx (cudasim_block_idx())
#define blockDim (dim3(cudasim_block_dim()))
#define gridDim (dim3(cudasim_grid_dim()))
#define CUDASIM_NO_HOOKS __attribute__((no_sanitize("thread"), no_sanitize_coverage, noinline))
#define CUDASIM_OUT_OF_LINE __attribute__((noinline))
#else
#define __shared__ static
#define threadIdx (*cudasim_here.thread)
#define blockIdx (cudasim_here.block)
#define blockDim (cudasim_here.block_dim)
#define gridDim (cudasim_here.grid_dim)
#define CUDASIM_NO_HOOKS
#define CUDASIM_OUT_OF_LINE
#endif
#define warpSize 32

#define __syncthreads() cudasim_syncthreads()
#define __syncthreads_count(p) cudasim_syncthreads_vote(!!(p), CUDASIM_COUNT)
#define __syncthreads_and(p) cudasim_syncthreads_vote(!!(p), CUDASIM_AND)
#define __syncthreads_or(p) cudasim_syncthreads_vote(!!(p), CUDASIM_OR)
#define __threadfence() cudasim_fence()
#define __threadfence_block() cudasim_fence()
#define __threadfence_system() cudasim_fence()
#define __trap() cudasim_trap("__trap() was called")
#undef assert
#define assert(c) ((c) ? (void)0 : cudasim_trap("assert(" #c ") failed"))

#include "vectors.h"
#include "arithmetic.h"
#include "half.h"
#include "warp.h"
#include "atomics.h"

// translate.py writes one CUDASIM_KERNEL for each kernel at the end of the source.
namespace cudasim {

template <auto Function> struct Call;
template <class... A, void (*Function)(A...)> struct Call<Function> {
    static constexpr unsigned sizes[] = {sizeof(A)..., alignof(A)..., 0};
    // size and alignment of each argument
    struct Pairs {
        unsigned value[2 * sizeof...(A) + 1] = {};
        constexpr Pairs() {
            for (size_t i = 0; i < sizeof...(A); ++i) value[2 * i] = sizes[i], value[2 * i + 1] = sizes[sizeof...(A) + i];
        }
    };
    static constexpr Pairs pairs = Pairs();
    template <size_t... I> CUDASIM_NO_HOOKS static void spread(void** p, std::index_sequence<I...>) {
        Function(*(A*)p[I]...);
    }
    CUDASIM_NO_HOOKS static void thunk(void** p) { spread(p, std::index_sequence_for<A...>()); }
};

}  // namespace cudasim

// The table is constant, so that loading a module runs only the source's own initializers.
#define CUDASIM_KERNEL(function, name, parameters)                                                       \
    {(void*)function, cudasim::Call<function>::thunk, name, parameters, cudasim::Call<function>::pairs.value, \
     sizeof(cudasim::Call<function>::pairs.value) / sizeof(unsigned) / 2}
