"""Checks for kernel code that only g++ accepts: inline assembly, and calls of functions that no GPU has."""
from __future__ import annotations

import re
import subprocess
from pathlib import Path

_ASSEMBLY = re.compile(r"\b(?:asm|__asm|__asm__)\b")
_NOT_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_MARKER = re.compile(r'#\s*(?:line\s+)?(\d+)\s+"([^"]*)"((?:\s+\d)*)')
# Functions that kernels may call: the simulator's, CUDA's list of C functions, and those that g++ inserts.
_MATH = ("acos asin atan cos sin tan acosh asinh atanh cosh sinh tanh atan2 cbrt ceil copysign erf erfc exp "
         "exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb isinf isnan finite j0 j1 jn "
         "ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter "
         "pow remainder remquo rint round roundeven scalbln scalbn sincos sinpi cospi sqrt tgamma trunc y0 "
         "y1 yn").split()
_ALLOWED = re.compile(
    rf"(?:__)?(?:{'|'.join(_MATH)})[fl]?(?:_r|_finite)?"
    r"|_ZGV\w+|cudasim\w*|_ZN?K?7cudasim\w*|(?:__wrap_)?mem(?:cpy|set|move|cmp)|str(?:cpy|len|cmp)"
    r"|abs|labs|llabs|div|printf|puts|putchar|fwrite|stdout|malloc|calloc|free|_Zn[wa]m|_Zd[la]Pvm?"
    r"|__tsan_\w+|__sanitizer_\w+|__gxx_personality_v0|_Unwind_Resume"
    r"|__cxa_(?:finalize|guard_\w+|atexit|pure_virtual|throw_bad_array_new_length)"
    r"|_ITM_\w+|__gmon_start__|__stack_chk_fail|__TMC_END__|_GLOBAL_OFFSET_TABLE_|__tls_get_addr"
    r"|_ZTVN10__cxxabiv1\w+")


def find_assembly(lines: str) -> str | None:
    """Return an error for the first line of user code with inline assembly, or None. Skip system headers."""
    code = _NOT_CODE.sub(lambda m: '""' + "\n" * m[0].count("\n"), _keep_markers(lines))
    name, number, system = "kernel.cu", 0, False
    for line in code.split("\n"):
        if marker := re.match(r"@(\d+)@([^@]*)@(\d*)@", line):
            number, name, system = int(marker[1]) - 1, marker[2], "3" in marker[3]
            continue
        number += 1
        if not system and (match := _ASSEMBLY.search(line)):
            return (f"{name}:{number}:{match.start() + 1}: error: the simulator runs no assembly of a GPU\n"
                    f"{number:5} | {line}\n      | {' ' * match.start()}^~~\n"
                    "note: put it between #ifndef __CUDASIM__ and #endif, and plain CUDA C beside it\n")
    return None


def _keep_markers(lines: str) -> str:
    """Return the source with `# 7 "file" 3` replaced by `@7@file@3@`, which contains no string."""
    def mark(m: re.Match) -> str:
        return f"@{m[1]}@{m[2]}@{m[3].replace(' ', '')}@"

    return "\n".join(_MARKER.sub(mark, line) if line.startswith("#") else line for line in lines.split("\n"))


def find_host_call(made: Path, source: str) -> str | None:
    """Return an error if a kernel calls a function of neither the simulator nor CUDA, else None.

    Args:
        made: the shared object of the kernel. Its undefined symbols are the functions that it calls.
        source: the user's lines, which are searched for the call.
    """
    listed = subprocess.run(["nm", "-D", "-u", str(made)], capture_output=True, encoding="utf-8").stdout
    names = [line.split()[-1].partition("@")[0] for line in listed.splitlines() if line.strip()]
    for name in names:
        if not _ALLOWED.fullmatch(name):
            plain = re.sub(r"\(.*|.*::|^__isoc\d+_", "", _demangle(name))
            return (f'{_place(plain, source)}error: calling a __host__ function("{plain}") from a '
                    f'__global__ or '
                    "__device__ function is not allowed\n")
    return None


def _demangle(name: str) -> str:
    if not name.startswith("_Z"):
        return name
    return subprocess.run(["c++filt", name], capture_output=True, encoding="utf-8").stdout.strip() or name


def _place(name: str, source: str) -> str:
    """Return the position of the first call of `name`, as `kernel.cu:3:5: `."""
    code = _NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), source)
    call = re.search(rf"\b{re.escape(name)}\s*\(", code)
    if not call:
        return "kernel.cu:1:1: "
    line = code.count("\n", 0, call.start()) + 1
    return f"kernel.cu:{line}:{call.start() - code.rfind(chr(10), 0, call.start())}: "
