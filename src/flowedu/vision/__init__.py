"""Chapter 5: pictures. flow.vision.datasets, flow.vision.transforms, flow.vision.models: what flowvision is to OneFlow and
torchvision to PyTorch, small. A program for flowvision runs with `import flowedu.vision as flowvision`."""
from __future__ import annotations

import importlib

__all__ = ["datasets", "models", "transforms"]


def __getattr__(name: str):
    """The three parts are imported when they are asked for: most programs have no pictures."""
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
