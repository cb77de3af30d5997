"""New tensors: from data, constants, ranges, random numbers, and windows."""
