"""Instruction sets that kernels are compiled for, and a check which of them this processor supports.

The module imports only the standard library, because setup.py reads it before anything is compiled.
"""
import os

ORDER = ("v4", "v3", "base")                        # the best first
NEEDS = {"v4": {"avx512f", "avx512vl", "avx512bw", "avx512dq", "avx2", "fma"},
         "v3": {"avx2", "fma", "bmi2", "f16c"}, "base": set()}


def cpu_flags() -> set[str]:
    """Return the processor's instruction-set flags.

    The set is empty if the system does not list them; then `base` is used.
    """
    machine = os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")
    if machine.lower() not in ("x86_64", "amd64"):
        return set()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("flags"):
                    return set(line.partition(":")[2].split())
    except OSError:
        pass
    return set()


def best(of: set[str], flags: set[str]) -> str | None:
    """Return the best instruction set of `of` for a processor with these flags.

    None: the processor supports none of them.
    """
    return next((isa for isa in ORDER if isa in of and NEEDS[isa] <= flags), None)
