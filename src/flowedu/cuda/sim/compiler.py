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

from flowedu.cuda.folders import build_once
from flowedu.cuda.signature import WRAP, signatures
from flowedu.cuda.sim.refuse import find_assembly, find_host_call
from flowedu.cuda.sim.translate import body, translate

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
COMMON = ["-std=c++17", "-w", "-fPIC", "-shared", "-fno-strict-aliasing", "-fno-gnu-unique",
          "-fno-semantic-interposition",
          "-Wl,-Bsymbolic", "-march=native", "-D__CUDA_ARCH_LIST__=900", f"-I{INCLUDE}",
          f"-I{INCLUDE / 'empty'}"]
VARIANTS = {
    "plain": ["-O3", "-g1", "-fno-optimize-sibling-calls", "-fno-math-errno", "-fno-trapping-math"],
    # Keep every access as written: not split, merged, or removed.
    "checked": ["-O1", "-g", "-fsanitize=thread", "--param", "tsan-distinguish-volatile=1",
                "-fsanitize-coverage=trace-pc",
                "-fno-tree-sra", "-fno-ipa-sra", "-fno-toplevel-reorder", "-fno-omit-frame-pointer",
                "-DCUDASIM_CHECKED", "-Wl,--wrap=memcpy,--wrap=memset,--wrap=memmove"],
}
# For the preprocessor alone, without cudasim.h. -imacros defines the include guards of host.h and its
# headers, so that they are included only once, by cudasim.h.
BEFORE = ["-std=c++17", "-D__CUDACC__=1", "-D__CUDA_ARCH__=900", "-D__CUDASIM__=1", f"-I{INCLUDE / 'empty'}",
          "-imacros", str(INCLUDE / "host.h")]
START = '#line 1 "kernel.cu"\n'
_ERROR = re.compile(r"kernel\.cu:\d+:\d+: (?:fatal )?error: (.*)")


class CompileError(Exception):
    """Error in the CUDA C. The text is g++'s, with the user's lines of kernel.cu."""


def gxx() -> list[str]:
    return (os.environ.get("CXX") or "g++").split()


def processor_seconds() -> int:
    """Return the limit of one compilation's CPU time: FLOWEDU_CUDA_COMPILE_SECONDS, 60 by default."""
    value = os.environ.get("FLOWEDU_CUDA_COMPILE_SECONDS", "")
    return max(1, int(value)) if value.isdecimal() else 60


def run(command: list[str], text: str = "", folder: Path | None = None) -> subprocess.CompletedProcess:
    """Run a compiler with `text` as its input.

    Raises:
        CompileError: it took more than processor_seconds() of CPU time, which other programs do not affect.
    """
    limited = ["/bin/sh", "-c", 'ulimit -S -t "$0"; exec "$@"', str(processor_seconds()), *command]
    done = subprocess.run(limited, input=text, capture_output=True, encoding="utf-8",
                          cwd=folder or tempfile.gettempdir())
    if (done.returncode and ("CPU time limit" in done.stderr or done.returncode in (-signal.SIGXCPU,
                                                                                    128 + signal.SIGXCPU))):
        raise CompileError(f"kernel.cu:1:1: error: compiling it takes more than {processor_seconds()} s of "
                           f"the processor\nnote: split long expressions and functions, or set "
                           f"FLOWEDU_CUDA_COMPILE_SECONDS\n")
    return done


def wants_checks() -> bool:
    """Return True if kernels are compiled with hooks from the start (FLOWEDU_CUDA_CHECK=1)."""
    return os.environ.get("FLOWEDU_CUDA_CHECK", "0") not in ("", "0")


@functools.cache
def identity(runtime: bool = False) -> str:
    """Return a hash of the headers, the compiler, and the processor, which affect every compiled kernel.

    Args:
        runtime: include the files of the simulator's library, which do not affect compiled kernels.
    """
    h = hashlib.sha256()
    for p in sorted([*INCLUDE.rglob("*.h*"), *HERE.glob("*.py"), HERE.parent / "signature.py",
                     *((HERE / "runtime").iterdir() if runtime else ())]):
        h.update(p.name.encode() + p.read_bytes())
    h.update(run([*gxx(), "-march=native", "-Q", "--help=target", "--version"]).stdout.encode())
    h.update(platform.machine().encode())
    return h.hexdigest()[:16]


def compiled(source: str, *, checked: bool = False, options: tuple[str, ...] = ()) -> bytes:
    """Return the shared object of a CUDA source, cached on disk. Raises CompileError."""
    variant = "checked" if checked else "plain"
    return build_once("sim-modules", ".so", (source, variant, *options, identity()),
                      lambda folder: build(source, folder / "kernel.so", variant, options),
                      f"compiling {called(source)} for the simulator{', with checks' if checked else ''} ...")


def called(source: str) -> str:
    """Return the name of a source in progress messages: its first kernel."""
    names = [*signatures(source)]
    if not names:
        return "kernels"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def build(source: str, made: Path, variant: str, options: tuple[str, ...]) -> Path:
    """Compile a source. The preprocessor runs first, because macros may define kernels.

    ThreadSanitizer's library is not linked, because the simulator defines its hooks.
    """
    folder, lines = made.parent, source
    user_source = source.rpartition(START)[2].removesuffix(WRAP[1])
    made.with_name("kernel.cu").write_text(user_source, encoding="utf-8")  # g++ quotes it
    if "#" in source or "asm" in source:
        first = run([*gxx(), "-E", "-w", *BEFORE, *options, "-x", "c++", "-"], START + source, folder)
        if first.returncode:
            raise CompileError(first.stderr)
        lines = first.stdout
        if message := find_assembly(lines):
            raise CompileError(message)
    code = translate(lines, variant=variant, options=shlex.join(options), original=source)
    file = folder / "translated" / "kernel.cu"          # the file name in reports
    file.parent.mkdir()
    file.write_text(code, encoding="utf-8")
    second = run([*gxx(), *COMMON, *VARIANTS[variant], "-x", "c++", str(file.relative_to(folder)),
                  "-nodefaultlibs", "-lm", "-lc", "-lgcc", "-o", made.name], folder=folder)
    if second.returncode:
        raise CompileError(explained(second.stderr, source, folder, options))
    if message := find_host_call(made, user_source):
        raise CompileError(message)
    return made


def explained(output: str, source: str, folder: Path, options: tuple[str, ...]) -> str:
    """Return the output of g++ with the positions of the user's source.

    Expanded macros move the words of a line, and the code around the source hides a missing brace. A second
    run therefore checks the source alone. If that fails for another reason, the first output is returned.
    """
    user_source = body(source.replace(WRAP[0], "").removesuffix(WRAP[1]))
    command = [*gxx(), *COMMON, "-fsyntax-only", *options, "-x", "c++", "-"]
    check = run(command, f'#include "cudasim.h"\n{START}{user_source}', folder).stderr
    first, other = _ERROR.search(output), _ERROR.search(check)
    return check if other and (not first or first[1] == other[1]) else output
