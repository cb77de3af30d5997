"""Kernels of the ops outside core."""
