"""The kernels compiled for AVX-512; setup.py puts them here."""
