"""Compiles CUDA C for the simulator with g++, and keeps what it made: the same source is compiled once."""
from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
import tempfile
from pathlib import Path

from flowedu.cuda.folders import made_once
from flowedu.cuda.sim.translate import translate

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
COMMON = ["-std=c++17", "-w", "-fPIC", "-shared", "-fno-strict-aliasing", "-fno-gnu-unique", "-fno-semantic-interposition",
          "-Wl,-Bsymbolic", "-march=native", "-D__CUDA_ARCH_LIST__=900", f"-I{INCLUDE}", f"-I{INCLUDE / 'empty'}"]
VARIANTS = {
    "plain": ["-O3", "-g1", "-fno-optimize-sibling-calls", "-fno-math-errno", "-fno-trapping-math"],
    # Every access stays as it is written: not split, not joined, not left out.
    "checked": ["-O1", "-g", "-fsanitize=thread", "--param", "tsan-distinguish-volatile=1", "-fsanitize-coverage=trace-pc",
                "-fno-tree-sra", "-fno-ipa-sra", "-fno-toplevel-reorder", "-fno-omit-frame-pointer", "-DCUDASIM_CHECKED",
                "-Wl,--wrap=memcpy,--wrap=memset,--wrap=memmove"],
}
# While macros are replaced, before the header is there:
BEFORE = ["-D__CUDACC__=1", "-D__CUDA_ARCH__=900", "-D__CUDASIM__=1", f"-I{INCLUDE / 'empty'}"]


class CompileError(Exception):
    """The CUDA C has an error; the text is g++'s, with lines of kernel.cu."""


def gxx() -> list[str]:
    return (os.environ.get("CXX") or "g++").split()


def run(command: list[str], text: str = "", folder: Path | None = None) -> subprocess.CompletedProcess:
    """A compiler with `text` as its input. No ThreadSanitizer is linked: the hooks are the simulator's own."""
    return subprocess.run(command, input=text, capture_output=True, text=True, cwd=folder or tempfile.gettempdir())


def wants_checks() -> bool:
    """FLOWEDU_CUDA_CHECK=1: kernels are compiled with hooks from the beginning."""
    return os.environ.get("FLOWEDU_CUDA_CHECK", "0") not in ("", "0")


@functools.cache
def identity() -> str:
    """What the result depends on beside source and options: the simulator's files, the compiler, the processor."""
    h = hashlib.sha256()
    for p in sorted([*HERE.rglob("*.h"), *HERE.rglob("*.cpp"), *HERE.rglob("*.hpp"), *HERE.glob("*.py"),
                     HERE.parent / "signature.py"]):
        h.update(p.name.encode() + p.read_bytes())
    h.update(run([*gxx(), "-march=native", "-Q", "--help=target", "--version"]).stdout.encode())
    h.update(platform.machine().encode())
    return h.hexdigest()[:16]


def compiled(source: str, *, checked: bool = False, options: tuple[str, ...] = ()) -> bytes:
    """The shared object of a CUDA source, from the cache if it was made before. Raises CompileError."""
    variant = "checked" if checked else "plain"
    return made_once("sim-modules", ".so", (source, variant, *options, identity()),
                     lambda folder: build(source, folder / "kernel.so", variant, options))


def build(source: str, made: Path, variant: str, options: tuple[str, ...]) -> Path:
    """First the preprocessor, so that kernels that a macro writes are seen, too; then the rest."""
    lines = source
    if "#" in source:
        first = run([*gxx(), "-E", "-w", "-std=c++17", *BEFORE, *options, "-x", "c++", "-"],
                    f'#line 1 "kernel.cu"\n{source}')
        if first.returncode:
            raise CompileError(first.stderr)
        lines = first.stdout
    code = translate(lines, variant=variant, options=" ".join(f"'{o}'" for o in options), original=source)
    file = made.with_name("kernel.cu")                  # the name that reports and errors give
    file.write_text(code)
    second = run([*gxx(), *COMMON, *VARIANTS[variant], "-x", "c++", file.name, "-nodefaultlibs", "-lm", "-lc", "-lgcc",
                  "-o", made.name], folder=made.parent)
    if second.returncode:
        raise CompileError(second.stderr)
    return made
