"""Written by `make stubs`: do not edit."""
class Ends:
    """Destinations of the gradients of one backward pass."""
REGISTRY: dict
def run_backward(roots: list, seeds: list, targets=None, retain: bool = False, create_graph: bool = False, into_grad: bool = False):
    """Walk back from `roots` with gradients `seeds` and add them to the `.grad` of leaves."""
