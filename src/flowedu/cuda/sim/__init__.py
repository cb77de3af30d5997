"""A CUDA driver that runs kernels on the processor: `libcuda.so.1` for PyCUDA, and a compiler that takes nvcc's place.

include/ is what kernels are compiled with, runtime/ the driver: threads as fibres (fibre, block, warp), memory, modules,
checks of every access in kernels that were compiled with hooks (checks, races), and counters (count).

The environment: FLOWEDU_CUDA_CHECK=1 compiles kernels with hooks; FLOWEDU_CUDA_SEED=n shuffles threads and blocks;
FLOWEDU_CUDA_DEVICES and _MEMORY (MiB of each) say what there is; FLOWEDU_CUDA_TIMEOUT limits the seconds of a launch, and
FLOWEDU_CUDA_COMPILE_SECONDS the processor time of the compiler.

What is different from a GPU: blocks run one after the other, so none can wait for a later one; threads of a warp do not run
in step (__syncwarp orders them; PyCUDA's gpuarray.sum and dot, which count on it, are wrong here, and the checks say so);
textures, cooperative groups, dynamic parallelism and tensor cores are not there; streams do their work at once, unless they
are captured (streams).

An array ends where it ends, to the byte, also in a block of a pool, which is larger (Machine.give), and in the arena of a
plan (cuda/ends.py). A kernel gets addresses alone, so this is not seen: an access beyond a view that stays in the memory of
its tensor, and one that misses its array by more than the gap behind it.
"""
