// What this header of CUDA has is known to the simulator without it.
