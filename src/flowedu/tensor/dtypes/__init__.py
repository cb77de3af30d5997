"""Limits and promotion of dtypes, and bfloat16 in NumPy."""
