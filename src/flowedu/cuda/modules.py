"""CUDA modules, loaded on a device from the files of _kernels/cuda.

A file is compiled when one of its kernels is first launched, for each element type. The compiled code is
cached on disk (source.py).
"""
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
_SYSTEM = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<.*$", re.M)  # kernels have the math functions without it
# Parts of the CPU's headers that kernels use: codes of types and faults, structs of views and updates.
_SHARED = {"abi.h": re.compile(r"^#define FE_MAX_DIM.*?$|^enum \{.*?\};|^typedef struct \{[^}]*\} fe_view;",
                               re.M | re.S),
           "update.h": re.compile(r"^typedef struct \{[^}]*\} fe_numbers;", re.M)}
# C types by dtype code. A bool is a byte that is 0 or 1, and half types are moved as 16 bits.
TYPES = ("float", "double", "int32_t", "int64_t", "int8_t", "uint8_t", "int8_t", "uint16_t", "uint16_t",
         "int16_t")
WIDE = ("double", "double", *("int64_t",) * 8)                      # types of the accumulators of T
BY_SIZE = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}  # types for copies

# The simulator defines these types. Warning 177 is about unused functions of the headers.
HEAD = "#ifndef __CUDASIM__\n#include <stdint.h>\n#pragma nv_diag_suppress 177\n#endif\n"


@functools.cache
def text(file: str) -> str:
    """Return a file with its includes inlined, each once. The text is complete for the compiler."""
    return _inline(file, set())


def _inline(file: str, included: set[str]) -> str:
    path = next((folder / file for folder in FOLDERS if (folder / file).exists()), None)
    if path is None:
        raise KernelError(f"there is no {file} among the kernels",
                          expected=", ".join(str(f) for f in FOLDERS), got="no such file")
    included.add(file)
    code = _SYSTEM.sub("", path.read_text(encoding="utf-8"))
    if file in _SHARED:
        code = "\n".join(_SHARED[file].findall(code)) + "\n"
    optional = set(re.findall(r'__has_include\("([^"]+)"\)', code))     # optional vector code for CPUs
    return _INCLUDE.sub(lambda m: "" if m[1] in included | optional else _inline(m[1], included), code)


def for_type(file: str, t: str, wide: str = "") -> str:
    """Return the source of a file for elements of the C type t."""
    return HEAD + f"typedef {t} T;\n" + (f"typedef {wide} Wide;\n" if wide else "") + text(file)


def own_file(source: str, t: str = "float", wide: str = "double") -> str:
    """Return a source with the kernels' headers that it includes, for the C type t. Line numbers are kept."""
    included: set[str] = set()
    headers = "".join(_inline(m[1], included) for m in _INCLUDE.finditer(source) if m[1] not in included)
    return (f'#line 1 "flowedu.h"\n{HEAD}typedef {t} T;\ntypedef {wide} Wide;\n{headers}\n#line 1 '
            f'"kernel.cu"\n'
            + _INCLUDE.sub("", source))


def once(f: Callable) -> Callable:
    """Cache a function like functools.cache, with a lock, so that threads compute each result only once."""
    cached, lock = functools.cache(f), threading.RLock()

    @functools.wraps(f)
    def call(*args):
        with lock:
            return cached(*args)
    return call


def _format_character(argument: Any) -> str:
    """Return the `struct` character of a kernel argument: an integer or pointer, a double, or bytes."""
    if isinstance(argument, bytes):
        return f"{len(argument)}s"
    return "d" if isinstance(argument, float) else "q"


class Module:
    """Compiled source. Its functions are loaded on first use, on each device."""

    def __init__(self, source: str):
        self.source, self._machine = source, machine()
        self._functions: dict[tuple[str, int], Any] = {}
        self.code = compiled(source, self._machine)

    def function(self, name: str, arguments: Sequence[Any]) -> Any:
        """Return PyCUDA's function of this name on the current device, prepared for arguments of these types.

        An int is an index_t or a pointer, a float is a double, and bytes are a struct.
        """
        key = name, self._machine.use()
        function = self._functions.get(key)
        if function is None:
            module = self._machine.driver.module_from_buffer(self.code)
            function = self._functions[key] = module.get_function(symbol(name, self.code))
            function.module = module                                    # keeps the module alive
            function.prepare([_format_character(a) for a in arguments])
        return function


@once
def module(file: str, t: str, wide: str = "") -> Module:
    return Module(for_type(file, t, wide))
