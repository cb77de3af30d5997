"""Chapter 2: gradients of eager calls."""
from flowedu.core.grad import nodes  # noqa: F401  (the names of recorded calls)
