"""Specialised kernels: convolutions in tiles, by Winograd, with channels last; attention."""
