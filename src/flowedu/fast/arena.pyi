"""Written by `make stubs`: do not edit."""
def place(buffers, budget: int = 2000) -> int:
    """Set the offset of every arena buffer and return the size of the arena in bytes."""
