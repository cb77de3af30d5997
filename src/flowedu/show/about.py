"""Output of `python -m flowedu`: the version, the devices of this machine, and the installed extras."""
from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from typing import Any

from flowedu.errors.extras import EXTRAS, install


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:                                    # the parent package is missing
        return False


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def about() -> dict[str, str]:
    """Return the lines that `python -m flowedu` prints, as {label: text}."""
    import numpy

    from flowedu import _kernels

    flow: Any = importlib.import_module("flowedu")
    built = [isa for isa in _kernels.ORDER if "matmul" in _kernels.compiled(isa)]
    installed = {name: all(map(_is_installed, modules)) for name, modules in EXTRAS.items()}
    missing = [name for name, complete in installed.items() if not complete]
    return {
        "flowedu": f"{flow.__version__}, {os.path.dirname(flow.__file__)}",
        "Python": f"{platform.python_version()}, NumPy {numpy.__version__}, "
                  f"OpenBLAS {importlib.metadata.version('scipy-openblas32')}",
        "processors": f"{processors()} of {os.cpu_count()}, {platform.machine()}",
        "instruction set": f"{_kernels.ISA}, of {', '.join(built)} that are built (FLOWEDU_ISA)",
        "threads": f"{flow.get_num_threads()} (FLOWEDU_NUM_THREADS)",
        "GPU": flow.cuda.get_device_name() if flow.cuda.is_available() else "none in use (FLOWEDU_CUDA)",
        "extras": ", ".join(name for name, complete in installed.items() if complete) or "none",
        "not installed": "; ".join(f"{name}: {install(name)}" for name in missing),
    }


def main() -> None:
    """Print the lines of about()."""
    for name, text in about().items():
        if text:
            print(f"{name:16}{text}")


if __name__ == "__main__":
    main()
