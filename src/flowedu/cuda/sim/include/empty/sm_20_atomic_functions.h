// Empty: cudasim.h defines the contents of this CUDA header.
