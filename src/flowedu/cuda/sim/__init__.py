"""CUDA driver that runs kernels on the processor: `libcuda.so.1` for PyCUDA, and a compiler that replaces nvcc.

include/ has the headers that kernels are compiled with. runtime/ is the driver: threads as fibres (fibre,
block, warp), memory, modules, checks of every access in kernels that were compiled with hooks (checks,
races), and counters (count).

The environment: FLOWEDU_CUDA_CHECK=1 compiles kernels with hooks; FLOWEDU_CUDA_SEED=n shuffles threads and
blocks; FLOWEDU_CUDA_DEVICES and _MEMORY (MiB of each) set the simulated devices; FLOWEDU_CUDA_TIMEOUT limits
the seconds of a launch, and FLOWEDU_CUDA_COMPILE_SECONDS the processor time of the compiler.

Differences from a GPU: blocks run one after the other, so none can wait for a later one. Threads of a warp do
not run in step (__syncwarp orders them; PyCUDA's gpuarray.sum and dot rely on it and are wrong here, and the
checks report that). Textures, cooperative groups, dynamic parallelism and tensor cores are missing. Streams
execute at once, unless they are captured (streams).

The checks know the end of an array to the byte, also in a larger block of a pool (Machine.give), and in the
arena of a plan (cuda/ends.py). A kernel gets addresses alone, so two errors are not detected: an access
beyond a view that stays in the memory of its tensor, and one that misses its array by more than the gap that
follows it.
"""
