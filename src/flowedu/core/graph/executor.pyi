"""Written by `make stubs`: do not edit."""
from typing import Any

class Executor:
    """Runs a Plan."""
    def accepts(self, arguments: tuple):
        """Whether these can be run as they are: ndarrays of the right shape and dtype, C-contiguous."""
    @property
    def as_tensors(self) -> bool: ...
    @property
    def counter(self) -> Any: ...
    @property
    def nt(self) -> Any: ...
    @property
    def plan(self) -> Any: ...
    @property
    def pythons(self) -> Any: ...
    def remember(self, there: bool):
        """Whether the scratch of the graph's `kept` nodes holds what an earlier run left: `kept` of fe_call (abi.h)."""
    def run(self, arguments: tuple): """One step."""
    @property
    def runs(self) -> int: ...
    def stale(self, share: int = 1):
        """True if the share of the threads, or the memory or layout of a variable (`p.data = ...`), is another one now."""
    def takes(self, arguments: tuple):
        """Whether these can be run as they are: eager local tensors of the right shape and dtype, contiguous."""
    def times(self, arguments: tuple, repeats: int = 20):
        """Seconds each call takes (the least of `repeats` runs), called one by one."""
    @property
    def written(self) -> list: ...
LARGEST: int
def scratch_bytes(entry: Any, places, threads: int = 0) -> int:
    """Scratch that the kernel of `entry` asks for on these places, with this number of threads (0: the present one)."""
