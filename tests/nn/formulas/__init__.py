"""NumPy formulas of the layers and functions, one file for each family. TABLE holds them all."""
from . import activations, dense, distances, images, losses, norms, windows  # noqa: F401
from .table import TABLE  # noqa: F401
