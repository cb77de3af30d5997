"""Written by `make stubs`: do not edit."""
HEAD: int
class Lane:
    """This rank's end of a lane."""
    def __init__(self, *args, **kwargs) -> None: ...
    def arrays(self, shape: tuple, dtype) -> tuple: """Return the data from the other rank as arrays, one for each box."""
    @property
    def capacity(self) -> int: ...
    def here(self, tag: int, soon: bool = False) -> bool:
        """Return True if the other rank has called `put` with the same tag; `soon` waits some microseconds."""
    def put(self, a, tag: int) -> None: """Send the bytes of an array to the other rank."""
    @property
    def side(self) -> int: """Lane.side: int"""
    def swap(self, a, tag: int) -> bool:
        """Call `put`, and return True if the data of the other rank arrives within some microseconds."""
