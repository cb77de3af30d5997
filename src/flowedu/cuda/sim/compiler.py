"""Compiler of CUDA C for the simulator: runs g++, and caches the result by source."""
from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shlex
import signal
import subprocess
import tempfile
from pathlib import Path

from flowedu.cuda.folders import made_once
from flowedu.cuda.signature import WRAP, signatures
from flowedu.cuda.sim.refuse import find_assembly, find_host_call
from flowedu.cuda.sim.translate import body, translate

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
# While macros are replaced, before the header is there. Of what it will bring the guards are there: it comes once.
BEFORE = ["-std=c++17", "-D__CUDACC__=1", "-D__CUDA_ARCH__=900", "-D__CUDASIM__=1", f"-I{INCLUDE / 'empty'}",
          "-imacros", str(INCLUDE / "host.h")]
START = '#line 1 "kernel.cu"\n'
_ERROR = re.compile(r"kernel\.cu:\d+:\d+: (?:fatal )?error: (.*)")


class CompileError(Exception):
    """The CUDA C has an error; the text is g++'s, with the user's lines of kernel.cu."""


def gxx() -> list[str]:
    return (os.environ.get("CXX") or "g++").split()


def processor_seconds() -> int:
    """The processor time that one run of the compiler may take: FLOWEDU_CUDA_COMPILE_SECONDS, 60 by default."""
    said = os.environ.get("FLOWEDU_CUDA_COMPILE_SECONDS", "")
    return max(1, int(said)) if said.isdecimal() else 60


def run(command: list[str], text: str = "", folder: Path | None = None) -> subprocess.CompletedProcess:
    """Run a compiler with `text` as its input. No ThreadSanitizer is linked: the hooks are the simulator's own.

    Raises:
        CompileError: it took longer than processor_seconds(). Time of the processor is counted, not that of a clock, so
            other programs do not matter.
    """
    limited = ["/bin/sh", "-c", 'ulimit -S -t "$0"; exec "$@"', str(processor_seconds()), *command]
    done = subprocess.run(limited, input=text, capture_output=True, encoding="utf-8", cwd=folder or tempfile.gettempdir())
    if done.returncode and ("CPU time limit" in done.stderr or done.returncode in (-signal.SIGXCPU, 128 + signal.SIGXCPU)):
        raise CompileError(f"kernel.cu:1:1: error: compiling it takes more than {processor_seconds()} s of the processor\n"
                           "note: split long expressions and functions, or set FLOWEDU_CUDA_COMPILE_SECONDS\n")
    return done


def wants_checks() -> bool:
    """FLOWEDU_CUDA_CHECK=1: kernels are compiled with hooks from the beginning."""
    return os.environ.get("FLOWEDU_CUDA_CHECK", "0") not in ("", "0")


@functools.cache
def identity(runtime: bool = False) -> str:
    """What a compiled kernel depends on beside source and options: the headers, the compiler, the processor.

    Args:
        runtime: what the simulator itself depends on: its own files, too, which compiled kernels know nothing of.
    """
    h = hashlib.sha256()
    for p in sorted([*INCLUDE.rglob("*.h*"), *HERE.glob("*.py"), HERE.parent / "signature.py",
                     *((HERE / "runtime").iterdir() if runtime else ())]):
        h.update(p.name.encode() + p.read_bytes())
    h.update(run([*gxx(), "-march=native", "-Q", "--help=target", "--version"]).stdout.encode())
    h.update(platform.machine().encode())
    return h.hexdigest()[:16]


def compiled(source: str, *, checked: bool = False, options: tuple[str, ...] = ()) -> bytes:
    """The shared object of a CUDA source, from the cache if it was made before. Raises CompileError."""
    variant = "checked" if checked else "plain"
    return made_once("sim-modules", ".so", (source, variant, *options, identity()),
                     lambda folder: build(source, folder / "kernel.so", variant, options),
                     f"compiling {called(source)} for the simulator{', with checks' if checked else ''} ...")


def called(source: str) -> str:
    """What a source is called while somebody waits for it: by its first kernel."""
    names = [*signatures(source)]
    return "kernels" if not names else names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def build(source: str, made: Path, variant: str, options: tuple[str, ...]) -> Path:
    """First the preprocessor, so that kernels that a macro writes are seen, too; then the rest."""
    folder, lines = made.parent, source
    own = source.rpartition(START)[2].removesuffix(WRAP[1])
    made.with_name("kernel.cu").write_text(own, encoding="utf-8")         # where g++ finds the lines that it shows
    if "#" in source or "asm" in source:
        first = run([*gxx(), "-E", "-w", *BEFORE, *options, "-x", "c++", "-"], START + source, folder)
        if first.returncode:
            raise CompileError(first.stderr)
        lines = first.stdout
        if said := find_assembly(lines):
            raise CompileError(said)
    code = translate(lines, variant=variant, options=shlex.join(options), original=source)
    file = folder / "translated" / "kernel.cu"          # the name that reports give
    file.parent.mkdir()
    file.write_text(code, encoding="utf-8")
    second = run([*gxx(), *COMMON, *VARIANTS[variant], "-x", "c++", str(file.relative_to(folder)), "-nodefaultlibs", "-lm",
                  "-lc", "-lgcc", "-o", made.name], folder=folder)
    if second.returncode:
        raise CompileError(explained(second.stderr, source, folder, options))
    if said := find_host_call(made, own):
        raise CompileError(said)
    return made


def explained(said: str, source: str, folder: Path, options: tuple[str, ...]) -> str:
    """What g++ said, with its marks where the user looks: macros were replaced, which moved the words of a line, and what
    is around the source hides that a brace is missing in it.

    So it is asked once more, without all that; where that fails for another reason, the first text stands."""
    own = body(source.replace(WRAP[0], "").removesuffix(WRAP[1]))
    more = run([*gxx(), *COMMON, "-fsyntax-only", *options, "-x", "c++", "-"], f'#include "cudasim.h"\n{START}{own}',
               folder).stderr
    first, other = _ERROR.search(said), _ERROR.search(more)
    return more if other and (not first or first[1] == other[1]) else said
