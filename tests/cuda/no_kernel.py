"""Ops of the registry without a CUDA kernel, and why. This may only become shorter: it is empty."""

NO_KERNEL: dict[str, str] = {}
