"""Written by `make stubs`: do not edit."""
from typing import Any

HEAD: int
class Lane:
    """This rank's end. out, back: arrays of 2 * (HEAD + capacity) bytes, zeros at first; the other has them the other way round."""
    def __init__(self, *args, **kwargs) -> None: ...
    def arrays(self, shape: tuple, dtype) -> tuple: """What the other gives, as arrays: one for each box."""
    @property
    def capacity(self) -> Any: ...
    def here(self, tag: int, soon: bool = False) -> bool:
        """After put: whether the other has put something under the same tag, now or some microseconds from now."""
    def put(self, a, tag: int) -> None: """Give the other the bytes of an array."""
    @property
    def side(self) -> int: """Lane.side: int"""
    def swap(self, a, tag: int) -> bool: """put, and whether the other's is here soon."""
