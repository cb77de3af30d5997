"""Optional optimizations: specialized ops, kernels, and passes that register themselves when imported.

They change the speed of a program, not its results.
"""
