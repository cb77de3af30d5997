"""CUDA driver that runs kernels on the processor.

It consists of `libcuda.so.1` for PyCUDA, and of a compiler that replaces nvcc.

include/ has the headers that kernels are compiled with. runtime/ is the driver: threads as fibres (fibre,
block, warp), memory, modules, checks of every access in kernels that were compiled with hooks (checks,
races), and counters (count).

The environment: FLOWEDU_CUDA_CHECK=1 compiles kernels with hooks; FLOWEDU_CUDA_SEED=n shuffles threads and
blocks; FLOWEDU_CUDA_DEVICES and _MEMORY (MiB of each) set the simulated devices; FLOWEDU_CUDA_TIMEOUT limits
the seconds of a launch, and FLOWEDU_CUDA_COMPILE_SECONDS the processor time of the compiler.

Differences from a GPU: blocks run one after the other, so a block cannot wait for a later one. Threads of a
warp do not run in lockstep; __syncwarp orders them. PyCUDA's gpuarray.sum and dot rely on lockstep, so their
results are wrong here, which the checks report. Textures, cooperative groups, dynamic parallelism, and tensor
cores are missing. Work on a stream is executed at once, unless it is captured (streams).

The checks use the exact end of an array, also in a larger block of a pool (Machine.give), and in the arena of
a plan (cuda/ends.py). A kernel receives only addresses, so two errors are not detected: an access beyond a
view but inside the memory of its tensor, and an access that misses its array by more than the gap after it.
"""
