"""Kernels in CUDA C in a separate process with the simulator. The judge never loads a kernel.

    yours = Simulated("add", text)              used by the laws like a Launched
    python -m flowedu_course.simulated FD_IN FD_OUT SOURCE NAME    the process, in a sandbox for grading

The judge compiles the kernel and inspects the compiled file. The process returns arrays, counters, and
faults, and the judge compares the arrays with NumPy. The simulator runs in the same process as the kernel.
The judge therefore refuses sources that contain more than CUDA C or call functions that kernels cannot call.
"""
from __future__ import annotations

import ctypes
import functools
import itertools
import os
import re
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from flowedu.cuda.faults import CudaFault
from flowedu.cuda.machine import machine
from flowedu.cuda.sim.compiler import INCLUDE
from flowedu.errors import KernelError
from flowedu_course.apart import Found, Other, again, failure, plain, serve, walls
from flowedu_course.laws.cuda import Launched, Ran

WORDS = ("kind", "problem", "expected", "got", "fix", "at")          # fields of a fault
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# Refused: macros that join words, and instructions to the compiler or assembler outside the language.
UNKNOWN = re.compile(r"(?P<joined>##|%:%:|\[\[|<:<:)|(?P<pragma>#[ \t]*pragma\b(?![ "
                     r"\t]+(?:unroll|once)\b)|_Pragma)|"
                     r"(?P<word>\b(?:asm|cudasim\w*|__\w+|_[A-Z]\w*))")
RUNS_FIRST, MADE_BY_FUNCTIONS = (14, 16), 10       # ELF section types and symbol type that run at load time
STARTS = 16                                        # bytes of the compiler's own entries there: two addresses
TABLE_OF_SYMBOLS = 2
OF_COMPILERS = re.compile(
    r"__(tsan|sanitizer_cov)_\w+|_ITM_\w+|__gmon_start__|__cxa_finalize|__gxx_personality_v0|"
    r"_Unwind_Resume|__stack_chk_fail|mem(cpy|set|move)")


# ---- in the judge's process
class Simulated(Launched):
    """A Launched kernel that runs in another process. Raises KernelError for code that no kernel needs."""

    def __init__(self, name: str, text: str):
        super().__init__(name, text)
        if machine().library is not None:
            refuse_symbols(self.kernels._code)
        self.other = Other("flowedu_course.simulated", text, name)

    def ran(self, arrays: Sequence[np.ndarray], order: int = 0) -> Ran:
        arrays = [np.ascontiguousarray(a, np.float32) for a in arrays]
        said, data = self.other.ask({"shapes": [a.shape for a in arrays], "order": order},
                                    [a.tobytes() for a in arrays])
        if "error" in said:
            raise again(said["error"])
        if "fault" in said:
            return Ran(None, {}, _fault(said["fault"]))
        shape = np.shape(self.ladder.answer(*arrays))
        counts = {str(k): int(v) for k, v in said["counts"].items()}
        return Ran(np.frombuffer(data, np.float32).reshape(shape), counts, None)


def _fault(said: dict) -> CudaFault:
    w = {k: plain(said[k]) for k in WORDS}
    fault = CudaFault(w["problem"], expected=w["expected"], got=w["got"], fix=w["fix"], at=w["at"])
    fault.kind = w["kind"]
    fault.line, fault.other_line = (None if n is None else int(n) for n in (said["line"], said["other_line"]))
    return fault


# ---- allowed contents of a kernel
@functools.cache
def _read_words() -> frozenset[str]:
    """Return the words of CUDA C, which are those in the simulator's headers."""
    return frozenset(re.findall(r"\w+", " ".join(f.read_text(encoding="utf-8") for f in INCLUDE.glob("*.h"))))


def refuse_words(text: str) -> None:
    """Raise KernelError if the text addresses the compiler, the assembler, or the simulator."""
    pieces = re.split(r"\\\r?\n", text)            # a word may continue on the next line
    ends = list(itertools.accumulate(map(len, pieces)))
    code = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), "".join(pieces))
    for m in UNKNOWN.finditer(code):
        word = m["word"]
        if word and word in _read_words() and not re.match("cudasim|__attribute|__builtin|__asm|_Z", word):
            continue
        number = 1 + code.count("\n", 0, m.start()) + sum(end <= m.start() for end in ends)
        raise KernelError(f"{m[0]} is not allowed in an answer: use plain CUDA C",
                          at=f"kernel.cu:{number}: {text.splitlines()[number - 1].strip()}", got="")


def refuse_symbols(code: bytes) -> None:
    """Raise KernelError if compiled code runs when it is loaded, or calls functions that no GPU has."""
    for name, kind, defined in _symbols(code):
        if kind == MADE_BY_FUNCTIONS:
            raise KernelError(f"{name} is set by a function that runs before the kernel", at="", got="")
        bare = name.partition("@")[0]
        known = (bare.startswith("cudasim_") and bare in _read_words() or OF_COMPILERS.fullmatch(bare)
                 or _mathematics(bare))
        if not defined and bare and not known:
            raise KernelError(f"a kernel cannot call {bare}: GPUs do not have it", at="", got="")


def _symbols(code: bytes) -> Iterator[tuple[str, int, bool]]:
    """Yield (name, kind, True if it is defined) of each symbol of an ELF file."""
    offset, = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, offset + i * size) for i in range(count)]
    for s in sections:
        if s[1] in RUNS_FIRST and s[5] > STARTS:
            raise KernelError("a variable outside of the kernel is initialized by code that runs before "
                              "the kernel", at="", got="")
        if s[1] == TABLE_OF_SYMBOLS:
            names = sections[s[6]][4]
            for at in range(s[4], s[4] + s[5], 24):
                begin, info, _, section = struct.unpack_from("<IBBH", code, at)
                begin += names
                yield code[begin:code.index(b"\0", begin)].decode(errors="replace"), info & 15, bool(section)


def _mathematics(name: str) -> bool:
    """Return True if libm has a function of this name."""
    library, found = ctypes.CDLL("libm.so.6"), Found()
    return hasattr(library, name) and bool(library.dladdr(getattr(library, name), ctypes.byref(found))) and \
        b"libm" in os.path.basename(found.file)


# ---- in the kernel's process
def _prepare(file: str, name: str) -> tuple[dict, Callable]:
    yours = Launched(name, Path(file).read_text("utf-8"))        # compiled, but not loaded yet
    walls()
    return {}, functools.partial(_run, yours)


def _run(yours: Launched, what: dict, data: bytes) -> tuple[dict, list[bytes]]:
    arrays, at = [], 0
    for shape in what["shapes"]:
        arrays.append(np.frombuffer(data, np.float32, int(np.prod(shape)), at).reshape(shape))
        at += arrays[-1].nbytes
    try:
        ran = yours.ran(arrays, what["order"])
    except Exception as error:
        return {"error": failure(error)}, []
    if ran.fault:
        words = {k: str(getattr(ran.fault, k) or "") for k in WORDS}
        return {"fault": {**words, "line": ran.fault.line, "other_line": ran.fault.other_line}}, []
    return {"counts": ran.counts}, [np.ascontiguousarray(ran.output, np.float32).tobytes()]


if __name__ == "__main__":
    serve(sys.argv[1:], lambda: _prepare(*sys.argv[3:5]))
