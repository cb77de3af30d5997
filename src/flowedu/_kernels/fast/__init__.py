"""Specialized kernels for convolution (register tiles, Winograd, channels-last images) and attention."""
