"""Written by `make stubs`: do not edit."""
def empty_cache() -> None: """Return all cached memory to the system."""
def memory_stats() -> dict: """Bytes in use by arrays (`live`) and held for reuse (`cached`)."""
def set_cache(enabled: bool) -> None:
    """Switch reuse of freed blocks on or off (off lets a memory checker see every access)."""
def zeros(shape: tuple, dtype, cls): """A new array of zeros, of class `cls`."""
