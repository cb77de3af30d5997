/* Asynchronous copies from global to shared memory that bypass registers (sm_80 and newer);
 * asynchronous_wait() waits for them. Older GPUs, and the simulator, copy synchronously. */
#ifndef FLOWEDU_CUDA_LESSONS_ASYNC_H
#define FLOWEDU_CUDA_LESSONS_ASYNC_H

#if defined(__CUDASIM__) || __CUDA_ARCH__ < 800
#define ASYNCHRONOUS 0
#else
#define ASYNCHRONOUS 1
#endif

/* N bytes, 4 or 16: the first `there` bytes are copied, the others become zero. */
template <int N> __device__ __forceinline__ void asynchronous_copy(float *to, const float *from, int there) {
#if ASYNCHRONOUS
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from), "n"(N), "r"(there) : "memory");
#else
    if (N == 16 && there == 16) *(float4 *)to = *(const float4 *)from;
    else
        for (int i = 0; i < N / 4; i++) to[i] = 4 * i < there ? from[i] : 0.0f;
#endif
}

/* Wait for this thread's copies; other threads see the data after a barrier. */
__device__ __forceinline__ void asynchronous_wait() {
#if ASYNCHRONOUS
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
#endif
