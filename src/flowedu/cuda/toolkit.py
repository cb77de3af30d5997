"""CUDA's compiler and headers: of a toolkit on this machine, else of the wheels that tools/setup_cuda.py installs."""
from __future__ import annotations

import os
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path

# All of one version: a newer nvvm makes code that an older ptxas refuses.
WHEELS = ("nvidia-cuda-nvcc==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-cuda-runtime==13.0.96",
          "nvidia-cuda-profiler-api==13.0.85", "nvidia-cuda-cccl==13.0.85")
NEEDED = ("cuda.h", "cudaProfiler.h", "cuda_fp16.h", "nv/target")       # by PyCUDA; by halves


@dataclass(frozen=True)
class Toolkit:
    """The folder of a toolkit; its nvcc (None: headers alone) and its headers."""
    folder: Path
    nvcc: Path | None
    headers: Path


def candidates() -> list[Path]:
    """Folders where a toolkit may be, the user's choice first. CUDA_HOME="" means: none that is installed."""
    home = os.environ.get("CUDA_HOME")
    wheels = [p for key in ("purelib", "platlib") for p in sorted(Path(sysconfig.get_path(key), "nvidia").glob("cu[0-9]*"))]
    if home is not None:
        return [*([Path(home)] if home else []), *wheels]
    nvcc = shutil.which("nvcc")
    return [Path("/usr/local/cuda"), *([Path(nvcc).resolve().parents[1]] if nvcc else []), *wheels]


def toolkit() -> Toolkit | None:
    """The first that has the driver's headers, or None."""
    for folder in candidates():
        nvcc = folder / "bin" / "nvcc"
        if all((folder / "include" / header).exists() for header in NEEDED):
            return Toolkit(folder, nvcc if nvcc.exists() else None, folder / "include")
    return None
