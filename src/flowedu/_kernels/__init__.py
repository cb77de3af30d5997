"""Finds the compiled kernels for this processor and binds OpenBLAS to them.

`TABLE[(kernel name, dtype code)] = (address, address of its scratch-size function or 0)`.
`TILES[(formula, dtype code)] = (address, result dtype code, operands)`: the pieces of elementwise programs.
`FLOWEDU_ISA=base|v3|v4` forces an instruction set (default: the best the processor has).
"""
import ctypes
import importlib
import importlib.util
import os
from pathlib import Path

ORDER = ("v4", "v3", "base")
NEEDS = {"v4": {"avx512f", "avx512vl", "avx512bw", "avx512dq", "avx2", "fma"}, "v3": {"avx2", "fma", "bmi2", "f16c"},
         "base": set()}


def cpu_flags() -> set[str]:
    """The processor's instruction-set flags; empty where the system does not tell (then `base` is used)."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return set(line.partition(":")[2].split())
    except OSError:
        pass
    return set()


def choose_isa() -> str:
    here = {p.name for p in Path(__file__).parent.iterdir() if p.is_dir() and any(p.glob("matmul.*.so"))}
    forced = os.environ.get("FLOWEDU_ISA")
    if forced:
        if forced not in here:
            raise ImportError(f"FLOWEDU_ISA={forced!r} is not built; built here: {sorted(here) or 'nothing'}")
        return forced
    machine = os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")
    flags = cpu_flags() if machine.lower() in ("x86_64", "amd64") else set()
    for isa in ORDER:
        if isa in here and NEEDS[isa] <= flags:
            return isa
    raise ImportError("flowedu's kernels are not compiled. In a checkout run `make build`; it needs gcc.")


def openblas() -> tuple[int, int]:
    """Addresses of (sgemm, dgemm) in the installed OpenBLAS wheel; its own thread pool is set to one thread."""
    found = importlib.util.find_spec("scipy_openblas32")         # importing it would cost as much as half of NumPy
    if found is None:
        raise ImportError("flowedu needs OpenBLAS: pip install scipy-openblas32")
    folder = Path(found.origin).parent / "lib"
    path = next((p for p in sorted(folder.iterdir()) if "openblas" in p.name and ".so" in p.name or
                 p.suffix in (".dylib", ".dll")), None)
    if path is None:
        raise ImportError(f"no OpenBLAS library in {folder}; reinstall it: pip install --force-reinstall "
                          "scipy-openblas32")
    lib = ctypes.CDLL(str(path))
    lib.scipy_openblas_set_num_threads(1)  # our own threads split the work
    return tuple(ctypes.cast(getattr(lib, f"scipy_cblas_{t}gemm"), ctypes.c_void_p).value for t in "sd")


def load() -> tuple[dict[tuple[str, int], tuple[int, int]], dict]:
    blas = openblas()
    table = {}
    for name in sorted({p.name.partition(".")[0] for p in (Path(__file__).parent / ISA).glob("*.*")} - {"__init__"}):
        module = importlib.import_module(f"{__name__}.{ISA}.{name}")
        if hasattr(module, "bind"):
            module.bind(*blas)
        for kernel, versions in module.table().items():
            for code, address in versions.items():
                table[kernel, code] = address
    return table, importlib.import_module(f"{__name__}.{ISA}.elementwise").tiles()


ISA = choose_isa()
TABLE, TILES = load()
