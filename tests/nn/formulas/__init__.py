"""What the layers and functions are, as formulas in NumPy, one file for each family. TABLE has them all."""
from . import activations, dense, distances, images, losses, norms, windows  # noqa: F401
from .table import TABLE  # noqa: F401
