"""Ops without a CUDA kernel, and why. This may only become shorter."""

NO_KERNEL = {
    **dict.fromkeys(("det", "inverse", "solve"), "NumPy's LAPACK computes them"),
    **dict.fromkeys(("searchsorted", "mode_place", "extreme_place"), "a Python function of NumPy arrays on the CPU, too"),
}
