"""Ops of the user: an op whose kernel and gradient are Python functions of NumPy arrays."""
