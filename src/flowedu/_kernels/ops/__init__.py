"""The kernels of the other ops."""
