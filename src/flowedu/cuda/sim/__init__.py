"""A CUDA driver that runs kernels on the processor: `libcuda.so.1` for PyCUDA, and a compiler that takes nvcc's place.

include/ is what kernels are compiled with, runtime/ the driver: threads as fibres (fibre, block, warp), memory, modules,
checks of every access in kernels that were compiled with hooks (checks, races), and counters (count).
"""
