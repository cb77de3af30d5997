"""The one table of Cython extensions. Everything else is in pyproject.toml.

Kernels are compiled once per instruction set (base, and on x86-64 also v3 = AVX2 and v4 = AVX-512); the loader picks
the best one the processor has, so one build runs everywhere and is fast where it can be.
"""
import copy
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = {p.stem: f"flowedu._kernels.{p.parent.name}.{p.stem}"           # a new kernel file is picked up
           for p in sorted(Path("src/flowedu/_kernels").glob("*/*.pyx"))}
HEADERS = ["_kernels/core", "_kernels/ops", "_kernels/fast"]
COMPILED = ["values", "ops", "graph", "grad"]      # folders of core with headers that other extensions read
ENGINE = ["flowedu.core.values.storage", "flowedu.tensor.dlpack", "flowedu.tensor.writing", "flowedu.core.ops.dispatch",
          "flowedu.core.ops.program", "flowedu.core.ops.pykernel", "flowedu.core.grad.tape", "flowedu.core.graph.executor",
          "flowedu.calls.function",
          "flowedu.oneflow04.image._pixels", "flowedu.distributed.mpi.lanes"]
EXACT = {"flowedu.oneflow04.image._pixels"}    # rounds where it is written: must give NumPy's bits
# their bits must not depend on where arrays lie
UPDATES = {"flowedu._kernels.core.update", "flowedu._kernels.ops.update_sgd", "flowedu._kernels.ops.update_adaptive"}

DEBUG = os.environ.get("FLOWEDU_DEBUG") == "1"   # make build-debug: bounds checks, address sanitizer
CYTHON_DIR = "build/cython-debug" if DEBUG else "build/cython"   # the two builds must not share generated C
X86 = platform.machine().lower() in ("x86_64", "amd64")
ISA = {"base": []}
if X86 and not DEBUG:
    ISA["v3"] = ["-mavx2", "-mfma", "-mbmi2", "-mf16c"]
    ISA["v4"] = ISA["v3"] + ["-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq", "-mprefer-vector-width=512"]
if only := os.environ.get("FLOWEDU_BUILD_ISA"):  # tools/mutants.py: one instruction set is enough to see a fault
    ISA = {name: flags for name, flags in ISA.items() if name in only.split()}

# No -ffast-math: it would drop NaN and infinity, and at link time it turns denormals off for the whole process.
OPT = ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math",
       "-ffp-contract=fast"]
WARN = ["-Wno-unused-function", "-Wno-unreachable-code-fallthrough", "-Wno-cpp"]
if DEBUG:
    OPT = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize=function", "-fno-omit-frame-pointer"]


def compiles(flags):
    """Whether the C compiler builds a program with these flags; a missing compiler ends the set-up with a remedy."""
    compiler = os.environ.get("CC", "cc").split()
    with tempfile.TemporaryDirectory() as d:
        src = Path(d, "probe.c")
        src.write_text("int main(void) { return 0; }\n")
        try:
            run = subprocess.run([*compiler, *flags, str(src), "-o", str(Path(d, "probe"))], capture_output=True)
        except FileNotFoundError:
            sys.exit(f"flowedu: no C compiler ('{compiler[0]}' not found). Install one: on Debian or Ubuntu "
                     "`apt-get install gcc`, on Fedora `dnf install gcc`, on macOS `xcode-select --install`.")
    return run.returncode == 0


if not compiles([]):
    sys.exit("flowedu: the C compiler cannot build a program; install the C library headers (Debian: libc6-dev).")
IN_ORDER = [f for f in ("-fno-associative-math", "-ffp-contract=off", "-fsigned-zeros") if compiles([f])]
UNCONTRACTED = [f for f in ("-ffp-contract=off",) if compiles([f])]
OPENMP = ["-fopenmp"] if compiles(["-fopenmp"]) else []
if not OPENMP:
    print("flowedu: this compiler has no OpenMP; kernels will use one thread (gcc has it).", file=sys.stderr)
WARN = [w for w in WARN if compiles([w])]
OPT = [f for f in OPT if compiles([f])]


def headers(*folders):
    """The C and Cython headers an extension of these folders may include."""
    return [str(p) for folder in folders for pattern in ("*.h", "*.pxd", "*.pxi")
            for p in sorted(Path("src/flowedu", folder).glob(pattern))]


def extension(name, flags=()):
    path = "src/" + name.replace(".", "/") + ".pyx"
    depends = headers(*HEADERS) if "._kernels." in name else headers(*HEADERS, *(f"core/{f}" for f in COMPILED))
    return Extension(name, [path], include_dirs=[f"src/flowedu/{f}" for f in HEADERS], depends=depends,
                     extra_compile_args=[*OPT, *WARN, *flags],
                     extra_link_args=[f for f in OPT if f.startswith("-fsanitize=")])


def own_copy(c_file, isa):
    """The generated C under a folder of its own; rewritten only when it changed, so that builds stay incremental."""
    src, dst = Path(c_file), Path(CYTHON_DIR, isa, Path(c_file).name)
    dst.parent.mkdir(parents=True, exist_ok=True)
    if not dst.exists() or dst.read_bytes() != src.read_bytes():
        shutil.copyfile(src, dst)
    return str(dst)


def extensions():
    directives = {"language_level": 3, "boundscheck": DEBUG, "wraparound": False, "cdivision": True,
                  "initializedcheck": DEBUG, "embedsignature": True}
    opts = {"compiler_directives": directives, "build_dir": CYTHON_DIR, "include_path": ["src"],
            "nthreads": 0, "emit_linenums": DEBUG}
    out = []
    for kernel in cythonize([extension(name) for name in KERNELS.values()], **opts):
        for isa, flags in ISA.items():
            variant = copy.copy(kernel)
            variant.name = f"flowedu._kernels.{isa}.{kernel.name.rpartition('.')[2]}"
            variant.sources = [own_copy(kernel.sources[0], isa)]   # one object file per variant
            variant.extra_compile_args = [*kernel.extra_compile_args, *flags,
                                          *(UNCONTRACTED if kernel.name in UPDATES else [])]
            out.append(variant)
    opts["compiler_directives"] = {**directives, "allow_none_for_extension_args": False}   # None is no tensor: a TypeError
    engine = cythonize([extension(name) for name in ENGINE], **opts)
    for ext in engine:
        ext.extra_compile_args = [*ext.extra_compile_args, *OPENMP, *(IN_ORDER if ext.name in EXACT else [])]
        ext.include_dirs = [*ext.include_dirs, numpy.get_include()]
        ext.define_macros = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")]
        ext.extra_link_args = [*ext.extra_link_args, *OPENMP]
    return out + engine


setup(ext_modules=extensions(),
      options={"build_ext": {"parallel": os.cpu_count() or 1}})
