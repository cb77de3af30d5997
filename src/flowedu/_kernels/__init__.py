"""Loader of the compiled kernels for this processor, and their binding to OpenBLAS.

The last lines here load the kernels of the course's ops. `register` adds other kernels when the records of
their ops are imported; a specialized kernel then replaces the plain one of the same name.

`TABLE[(kernel name, dtype code)] = (address, address of its scratch-size function or 0)`.
`TILES[(formula, dtype code)] = (address, result dtype code, operands)`: the pieces of elementwise programs.
`FLOWEDU_ISA=base|v3|v4` forces an instruction set (default: the best one of the processor).
"""
import ctypes
import importlib
import importlib.util
import os
from collections.abc import Callable

from .processor import NEEDS, ORDER, best, cpu_flags

HERE = os.path.dirname(__file__)


def compiled(isa: str) -> list[str]:
    """Return the names of the compiled kernel modules for this instruction set.

    The list is empty if the instruction set is not built.
    """
    folder = os.path.join(HERE, isa)
    files = os.listdir(folder) if os.path.isdir(folder) else ()
    return sorted({f.partition(".")[0] for f in files if f.endswith((".so", ".pyd"))})


def choose_isa() -> str:
    here = {isa for isa in ORDER if "matmul" in compiled(isa)}
    forced = os.environ.get("FLOWEDU_ISA")
    if forced and forced not in here:
        raise ImportError(f"FLOWEDU_ISA={forced!r} is not built; built here: {sorted(here) or 'nothing'}")
    if forced:
        lacks = NEEDS[forced] - cpu_flags()
        if lacks:                                                # avoids an illegal instruction
            raise ImportError(f"FLOWEDU_ISA={forced!r}: this processor lacks {', '.join(sorted(lacks))}")
        return forced
    if chosen := best(here, cpu_flags()):
        return chosen
    raise ImportError("flowedu's kernels are not compiled" + (f" for this processor, only {sorted(here)}"
                                                              if here else "") +
                      ". In a checkout run `make build`; it needs gcc.")


def openblas() -> tuple[int, int]:
    """Addresses of (sgemm, dgemm) in the installed OpenBLAS wheel.

    It gets one thread: our own threads split the work.
    """
    # Importing it would cost as much as half of NumPy.
    found = importlib.util.find_spec("scipy_openblas32")
    if found is None or found.origin is None:
        raise ImportError("flowedu needs OpenBLAS: pip install scipy-openblas32")
    folder = os.path.join(os.path.dirname(found.origin), "lib")
    file = next((f for f in sorted(os.listdir(folder)) if "openblas" in f and ".so" in f or
                 f.endswith((".dylib", ".dll"))), None)
    if file is None:
        raise ImportError(f"no OpenBLAS library in {folder}; reinstall it: pip install --force-reinstall "
                          "scipy-openblas32")
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    # Read on loading: threads made here would spin a while.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    try:
        lib = ctypes.CDLL(os.path.join(folder, file))
    finally:
        os.environ.pop("OPENBLAS_NUM_THREADS")
        if before is not None:
            os.environ["OPENBLAS_NUM_THREADS"] = before
    lib.scipy_openblas_set_num_threads(1)                        # of a library that somebody loaded before us
    single, double = (ctypes.cast(function, ctypes.c_void_p).value or 0
                      for function in (lib.scipy_cblas_sgemm, lib.scipy_cblas_dgemm))
    return single, double


def register(*modules: str) -> None:
    """Register the kernels of these modules in TABLE, replacing kernels of the same name.

    Records of ops name the modules of their kernels, so TABLE grows as records are imported.
    """
    for name in modules:
        module = importlib.import_module(f"{__name__}.{ISA}.{name}")
        if hasattr(module, "bind"):
            module.bind(*BLAS)
        for kernel, versions in module.table().items():
            TABLE.update({(kernel, code): address for code, address in versions.items()})


ISA, BLAS = choose_isa(), openblas()
TABLE: dict[tuple[str, int], tuple[int, int]] = {}
# {code of a 16-bit float: f(op, float32's row, specs, output specs, attributes), which gives a call's row and
# `extra`}
NARROW: dict[int, Callable] = {}
register("elementwise", "matmul", "reduce", "layout", "cast")          # the course's
TILES = importlib.import_module(f"{__name__}.{ISA}.elementwise").tiles()
