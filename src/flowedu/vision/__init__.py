"""Computer vision: flow.vision.datasets, .transforms, .models, .ops, .io, and .utils (chapter 5).

The package is a small counterpart of flowvision (OneFlow) and torchvision (PyTorch). A program for flowvision
runs with `import flowedu.vision as flowvision`.
"""
from __future__ import annotations

from flowedu.diagnostics.lazy_imports import lazy_import

__all__ = ["datasets", "io", "models", "ops", "transforms", "utils"]

# The parts are imported at their first use, because most programs need no images.
__getattr__, __dir__ = lazy_import(__name__, {name: f"{__name__}.{name}" for name in __all__})
