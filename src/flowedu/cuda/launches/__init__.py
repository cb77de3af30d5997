"""Launch functions of the kernels in _kernels/cuda, a file for each family. table.py imports them.

Their docstrings list the ints and reals of a Call, and its arrays as `inputs -> outputs`.
"""
