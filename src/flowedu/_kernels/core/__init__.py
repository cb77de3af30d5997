"""The kernels of the course: elementwise, matrix product, copies and casts, reductions."""
