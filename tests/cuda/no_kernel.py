"""Ops of the registry without a CUDA kernel, and why. This may only become shorter, but for what LAPACK and pocketfft do.
"""

NO_KERNEL: dict[str, str] = dict.fromkeys(
    "cholesky leading_minor eigh svd qr lu pseudo_inverse slogdet matrix_exp rfft irfft".split(),
    "LAPACK and pocketfft work in main memory: flow.linalg and flow.fft send numbers there and back "
    "(tests/cuda/test_engine_functions.py)")
