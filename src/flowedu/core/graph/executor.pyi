"""Written by `make stubs`: do not edit."""
from typing import Any

class Executor:
    """Executor of a Plan."""
    def accepts(self, arguments: tuple):
        """Return True if `run` can use the arguments unchanged: C-contiguous ndarrays with the right shapes and dtypes."""
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
    def run(self, arguments: tuple): """Run one step."""
    @property
    def runs(self) -> int: ...
    def set_kept(self, valid: bool):
        """Set `kept` (fe_call in abi.h): True if the scratch memory of the `kept` nodes is valid from an earlier run."""
    def stale(self, share: int = 1):
        """Return True if the share of threads, or the memory or layout of a variable (`p.data = ...`), has changed."""
    def takes(self, arguments: tuple):
        """Return True for contiguous, eager, local CPU tensors with the right shapes and dtypes."""
    def times(self, arguments: tuple, repeats: int = 20):
        """Return the seconds that each call takes alone, the least of `repeats` runs."""
    @property
    def written(self) -> list: ...
LARGEST: int
def scratch_bytes(entry: Any, places, threads: int = 0) -> int:
    """Return the bytes of scratch memory that the kernel of `entry` needs. threads: 0 for the current setting."""
