"""CUDA's compiler and headers, of an installed toolkit or of the wheels of tools/setup_cuda.py."""
from __future__ import annotations

import os
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path

# All of one version, as an older ptxas rejects the code of a newer nvvm.
WHEELS = ("nvidia-cuda-nvcc==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-crt==13.0.88",
          "nvidia-cuda-runtime==13.0.96", "nvidia-cuda-profiler-api==13.0.85", "nvidia-cuda-cccl==13.0.85")
NEEDED = ("cuda.h", "cudaProfiler.h", "cuda_fp16.h", "nv/target")  # for PyCUDA, and half types


@dataclass(frozen=True)
class Toolkit:
    """Folder of a toolkit, with its nvcc (None: headers only) and its headers."""
    folder: Path
    nvcc: Path | None
    headers: Path


def candidates() -> list[Path]:
    """Return folders that may contain a toolkit, the user's choice first. CUDA_HOME="" allows only wheels."""
    home = os.environ.get("CUDA_HOME")
    wheels = [p for key in ("purelib", "platlib") for p in sorted(Path(sysconfig.get_path(key),
                                                                       "nvidia").glob("cu[0-9]*"))]
    if home is not None:
        return [*([Path(home)] if home else []), *wheels]
    nvcc = shutil.which("nvcc")
    return [Path("/usr/local/cuda"), *([Path(nvcc).resolve().parents[1]] if nvcc else []), *wheels]


def toolkit() -> Toolkit | None:
    """Return the first toolkit that has the driver's headers, or None."""
    for folder in candidates():
        nvcc = folder / "bin" / "nvcc"
        if all((folder / "include" / header).exists() for header in NEEDED):
            return Toolkit(folder, nvcc if nvcc.exists() else None, folder / "include")
    return None
