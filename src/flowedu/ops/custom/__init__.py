"""User-defined ops, whose kernels and gradients are Python functions of NumPy arrays."""
