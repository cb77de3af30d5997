"""The kernels compiled for AVX2 and FMA; setup.py puts them here."""
