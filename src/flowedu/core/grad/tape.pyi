"""Written by `make stubs`: do not edit."""
from typing import Any

class Ends:
    """Where the paths of one backward end."""
REGISTRY: dict
def accumulate_into(leaf: Any, g: Any): """leaf.grad += g, for backward(inputs=...)."""
def run_backward(roots: list, seeds: list, targets=None, retain: bool = False, create_graph: bool = False):
    """Walk back from `roots` with gradients `seeds`."""
