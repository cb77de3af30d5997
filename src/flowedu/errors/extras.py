"""Packages that only parts of flowedu need: the extras of pyproject.toml, and the command that installs one.

The command names packages, not `flowedu[plot]`, because flowedu itself is installed from a folder, not from
an index.
"""
from __future__ import annotations

import re

# {extra of pyproject.toml: the modules that it installs}
EXTRAS = {"plot": ("matplotlib",), "image": ("PIL",), "record": ("google.protobuf",), "onnx": ("onnx",),
          "safetensors": ("safetensors",), "tensorboard": ("tensorboard",), "cuda": ("pycuda",),
          "mpi": ("mpi4py",)}


def requirements(extra: str) -> list[str]:
    """Return the requirements of an extra in pip's form: ["matplotlib>=3.8"].

    Empty if flowedu is not installed.
    """
    import importlib.metadata  # imported here, because it takes a tenth of import flowedu
    try:
        lines = importlib.metadata.requires("flowedu") or ()
    except importlib.metadata.PackageNotFoundError:          # a checkout that is only on the path
        return []
    marked = [line.partition(";") for line in lines]
    return [what.strip() for what, _, when in marked if re.search(rf"""extra\s*==\s*["']{extra}["']""", when)]


def install(extra: str) -> str:
    """Return the command that installs an extra: `pip install "matplotlib>=3.8"`."""
    if extra == "cuda":                                      # no wheel: tools/setup_cuda.py makes one
        return "make test-cuda (in flowedu's checkout)"
    words = [f'"{r}"' if re.search(r"[<>=! ]", r) else r for r in requirements(extra)]
    return f"pip install {' '.join(words)}" if words else f"pip install '.[{extra}]' (in flowedu's checkout)"
