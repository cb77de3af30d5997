"""Written by `make stubs`: do not edit."""
def place(buffers, budget: int = 2000) -> int: """Give every arena buffer its offset; returns the bytes the arena needs."""
