"""The one table of Cython extensions.

Everything else is in pyproject.toml; how they are compiled: tools/build_once.py.

Kernels are compiled once per instruction set (base, and on x86-64 also v3 = AVX2 and v4 = AVX-512); the
loader picks the best one the processor has, so one build runs everywhere and is fast where it can be.
`FLOWEDU_BUILD_ISA="base v3"` compiles for these alone, `native` for the best this processor has.
"""
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_py import build_py


def load(path):
    """A file of this checkout as a module, without the package around it."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    # Processes of Cython's find it by name.
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


processor, build_once = load("src/flowedu/_kernels/processor.py"), load("tools/build_once.py")

KERNELS = {p.stem: f"flowedu._kernels.{p.parent.name}.{p.stem}"           # a new kernel file is picked up
           for p in sorted(Path("src/flowedu/_kernels").glob("*/*.pyx"))}
HEADERS = ["_kernels/core", "_kernels/ops", "_kernels/fast"]
ENGINE = ["flowedu.core.values.storage", "flowedu.tensor.interop.dlpack", "flowedu.tensor.inplace.writing",
          "flowedu.core.ops.call", "flowedu.core.ops.program", "flowedu.core.eager.dispatch",
          "flowedu.ops.custom.pykernel", "flowedu.core.grad.tape", "flowedu.core.graph.executor",
          "flowedu.diagnostics.function", "flowedu.fast.memory", "flowedu.fast.arena",
          "flowedu.fast.operators", "flowedu.fast.tensors", "flowedu.oneflow04.image._pixels",
          "flowedu.distributed.mpi.lanes", "flowedu.show.stamps"]
EXACT = {"flowedu.oneflow04.image._pixels"}    # rounds where it is written: must give NumPy's bits
# their bits must not depend on where arrays lie
UPDATES = {"flowedu._kernels.core.update", "flowedu._kernels.ops.update_sgd",
           "flowedu._kernels.ops.update_adaptive"}
ORDERED = {"flowedu._kernels.core.elementwise"}    # functions of vecmath_more.h are right as they are written

DEBUG = os.environ.get("FLOWEDU_DEBUG") == "1"   # make build-debug: bounds checks, address sanitizer
X86 = platform.machine().lower() in ("x86_64", "amd64")
ISA = {"base": []}
if X86 and not DEBUG:
    ISA["v3"] = ["-mavx2", "-mfma", "-mbmi2", "-mf16c"]
    ISA["v4"] = ISA["v3"] + ["-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq",
                             "-mprefer-vector-width=512"]
# Make chapter-N: the one that runs here; tools/mutants.py: one is enough.
if only := os.environ.get("FLOWEDU_BUILD_ISA"):
    if only == "native":
        only = processor.best(set(ISA), processor.cpu_flags())
    ISA = {name: flags for name, flags in ISA.items() if name in only.split()}
# Student trees have compiled kernels. While these fit, nothing is compiled.
HANDED = not DEBUG and load("tools/handed_kernels.py").fits(Path(), ISA)

# No -ffast-math: it would drop NaN and infinity, and at link time it turns denormals off for the whole
# process.
OPT = ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math",
       "-ffp-contract=fast"]
WARN = ["-Wno-unused-function", "-Wno-unreachable-code-fallthrough", "-Wno-cpp"]
if DEBUG:
    OPT = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize=function", "-fno-omit-frame-pointer"]


def compiles(flags):
    """Return True if the C compiler builds a program with these flags. Without a compiler, exit with a remedy."""
    if HANDED:
        return True
    compiler = os.environ.get("CC", "cc").split()
    with tempfile.TemporaryDirectory() as d:
        src = Path(d, "probe.c")
        src.write_text("int main(void) { return 0; }\n")
        try:
            run = subprocess.run([*compiler, *flags, str(src), "-o", str(Path(d, "probe"))],
                                 capture_output=True)
        except FileNotFoundError:
            sys.exit(f"flowedu: no C compiler ('{compiler[0]}' not found). Install one: on Debian or Ubuntu "
                     "`apt-get install gcc`, on Fedora `dnf install gcc`, on macOS `xcode-select --install`.")
    return run.returncode == 0


if not compiles([]):
    sys.exit("flowedu: the C compiler cannot build a program; install the C library headers (Debian: "
             "libc6-dev).")
IN_ORDER = [f for f in ("-fno-associative-math", "-ffp-contract=off", "-fsigned-zeros") if compiles([f])]
UNCONTRACTED = [f for f in ("-ffp-contract=off",) if compiles([f])]
# gcc's jump threading makes two loop bodies of a choice between two values, and computes both; long formulas
# want scheduling.
AS_WRITTEN = ["-DFE_IN_ORDER", *(f for f in ("-fno-associative-math", "-fsigned-zeros", "-fno-thread-jumps",
                                             "-fno-split-paths", "-fschedule-insns", "-fsched-pressure")
                                 if compiles([f]))]
OPENMP = ["-fopenmp"] if compiles(["-fopenmp"]) else []
if not OPENMP:
    print("flowedu: this compiler has no OpenMP; kernels will use one thread (gcc has it).", file=sys.stderr)
WARN = [w for w in WARN if compiles([w])]
OPT = [f for f in OPT if compiles([f])]


def kernel(name, isa):
    return Extension(f"flowedu._kernels.{isa}.{name.rpartition('.')[2]}",
                     ["src/" + name.replace(".", "/") + ".pyx"],
                     include_dirs=[f"src/flowedu/{f}" for f in HEADERS],
                     extra_compile_args=[*OPT, *WARN, *ISA[isa], *(UNCONTRACTED if name in UPDATES else []),
                                         *(AS_WRITTEN if name in ORDERED else [])],
                     extra_link_args=[f for f in OPT if f.startswith("-fsanitize=")])


def engine(name):
    return Extension(name, ["src/" + name.replace(".", "/") + ".pyx"],
                     include_dirs=[*(f"src/flowedu/{f}" for f in HEADERS), numpy.get_include()],
                     define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
                     extra_compile_args=[*OPT, *WARN, *OPENMP, *(IN_ORDER if name in EXACT else [])],
                     extra_link_args=[*(f for f in OPT if f.startswith("-fsanitize=")), *OPENMP])


class Build(build_once.BuildOnce):
    # The two must not share generated C.
    folder = Path("build/kernels-debug" if DEBUG else "build/kernels")

    def cython(self, ext):
        directives = {"language_level": 3, "boundscheck": DEBUG, "wraparound": False, "cdivision": True,
                      "initializedcheck": DEBUG, "embedsignature": True}
        if ext.name in ENGINE:
            directives["allow_none_for_extension_args"] = False             # None is no tensor: a TypeError
        return {"compiler_directives": directives, "include_path": ["src"], "emit_linenums": DEBUG}


class BuildPackage(build_py):
    """Also puts the stubs of core next to its modules: jedi reads no stub package where a module has a Python source."""

    def run(self):
        super().run()
        if not self.editable_mode:
            shutil.copytree("src/flowedu-stubs/core", Path(self.build_lib, "flowedu", "core"),
                            dirs_exist_ok=True)


EXTENSIONS = [] if HANDED else [*(kernel(name, isa) for name in KERNELS.values() for isa in ISA),
                                *map(engine, ENGINE)]
setup(ext_modules=EXTENSIONS,
      cmdclass={"build_ext": Build, "build_py": BuildPackage},
      options={"build_ext": {"parallel": os.cpu_count() or 1}})
