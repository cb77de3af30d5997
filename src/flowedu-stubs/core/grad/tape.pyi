"""Written by `make stubs`: do not edit."""
REGISTRY: dict
class Sinks:
    """Destinations of the gradients of one backward pass."""
def run_backward(roots: list, seeds: list, targets=None, retain: bool = False, create_graph: bool = False, into_grad: bool = False):
    """Run backward from `roots` with gradients `seeds`; add the results to the `.grad` of leaves."""
