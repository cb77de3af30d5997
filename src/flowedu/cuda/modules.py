"""The files of _kernels/cuda as modules of the device: compiled when a kernel of theirs is first launched, once for each
element type; the compiled code is kept on disk (source.py)."""
from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flowedu.cuda.machine import machine
from flowedu.cuda.source import compiled, symbol
from flowedu.errors import KernelError

HOME = Path(__file__).resolve().parents[1] / "_kernels"
FOLDERS = tuple(HOME / name for name in ("cuda", "core", "ops"))
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)".*$', re.M)
_SYSTEM = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<.*$", re.M)          # a kernel has the functions of mathematics without
# What of the CPU's headers holds here, too: numbers of types and of faults, the structs of views and of updates.
_SHARED = {"abi.h": re.compile(r"^#define FE_MAX_DIM.*?$|^enum \{.*?\};|^typedef struct \{[^}]*\} fe_view;", re.M | re.S),
           "update.h": re.compile(r"^typedef struct \{[^}]*\} fe_numbers;", re.M)}
# What T is called in C, by code; a bool is a byte that is 0 or 1, and half types are moved as 16 bits.
TYPES = ("float", "double", "int32_t", "int64_t", "int8_t", "uint8_t", "int8_t", "uint16_t", "uint16_t", "int16_t")
WIDE = ("double", "double", *("int64_t",) * 8)                      # what sums of T are carried in
BY_SIZE = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}   # what is only moved

# The simulator has these types already. Not every file uses all that the headers it includes have.
HEAD = "#ifndef __CUDASIM__\n#include <stdint.h>\n#pragma nv_diag_suppress 177\n#endif\n"


@functools.cache
def text(file: str) -> str:
    """A file with those it includes in their places, each once: so the text says all there is to compile."""
    return _inlined(file, set())


def _inlined(file: str, seen: set[str]) -> str:
    found = next((folder / file for folder in FOLDERS if (folder / file).exists()), None)
    if found is None:
        raise KernelError(f"there is no {file} among the kernels", expected=", ".join(str(f) for f in FOLDERS),
                          got="no such file")
    seen.add(file)
    own = _SYSTEM.sub("", found.read_text(encoding="utf-8"))
    if file in _SHARED:
        own = "\n".join(_SHARED[file].findall(own)) + "\n"
    optional = set(re.findall(r'__has_include\("([^"]+)"\)', own))     # vector code of CPUs, where that is installed
    return _INCLUDE.sub(lambda m: "" if m[1] in seen | optional else _inlined(m[1], seen), own)


def for_type(file: str, t: str, wide: str = "") -> str:
    """The source of a file, compiled for elements of the C type t."""
    return HEAD + f"typedef {t} T;\n" + (f"typedef {wide} Wide;\n" if wide else "") + text(file)


def own_file(source: str, t: str = "float", wide: str = "double") -> str:
    """A source that may include what lies among the kernels, for elements of the C type t. Its lines keep their numbers."""
    seen: set[str] = set()
    headers = "".join(_inlined(m[1], seen) for m in _INCLUDE.finditer(source) if m[1] not in seen)
    return (f'#line 1 "flowedu.h"\n{HEAD}typedef {t} T;\ntypedef {wide} Wide;\n{headers}\n#line 1 "kernel.cu"\n'
            + _INCLUDE.sub("", source))


def once(f: Callable) -> Callable:
    """functools.cache for what several threads ask for at a time: the first makes it, and the others get the same."""
    cached, lock = functools.cache(f), threading.RLock()

    @functools.wraps(f)
    def call(*args):
        with lock:
            return cached(*args)
    return call


class Module:
    """A compiled source. Its functions are made when they are first asked for, on each device."""

    def __init__(self, source: str):
        self.source, self._machine, self._functions = source, machine(), {}
        self.code = compiled(source, self._machine)

    def function(self, name: str, arguments: Sequence[Any]) -> Any:
        """PyCUDA's function of this name on the current device, prepared for arguments like these: an int is an index_t or
        a pointer, a float a double, bytes a struct."""
        key = name, self._machine.use()
        found = self._functions.get(key)
        if found is None:
            module = self._machine.driver.module_from_buffer(self.code)
            found = self._functions[key] = module.get_function(symbol(name, self.code))
            found.module = module                                    # lives as long as its function
            found.prepare([f"{len(a)}s" if isinstance(a, bytes) else "d" if isinstance(a, float) else "q"
                           for a in arguments])
        return found


@once
def module(file: str, t: str, wide: str = "") -> Module:
    return Module(for_type(file, t, wide))
