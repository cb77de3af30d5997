"""Compiler of CUDA C: nvcc for a GPU, sim/compiler.py for the simulator. Results are cached on disk."""
from __future__ import annotations

import functools
import re
import struct
import subprocess
from pathlib import Path

from flowedu.cuda.folders import made_once
from flowedu.cuda.signature import WRAP
from flowedu.errors import DeviceError, KernelError

_LINE = re.compile(r"kernel\.cu(?::(\d+)(?::\d+)?: (?:fatal )?error: |"                        # g++
                   r"\((\d+)\): (?:catastrophic )?error:? ?(?:#\d+-D)?:? ?)(.*)")             # nvcc
_INCLUDE = re.compile(r"[ \t]*#[ \t]*include\b")
_MOST = 2000                                             # characters of what a compiler says


def compiled(source: str, machine, options: tuple[str, ...] = ()) -> bytes:
    """A module (a cubin) for the machine's device. Raises KernelError with the line of the source that has an error."""
    text = prepared(source)
    if machine.kind == "sim":
        from flowedu.cuda.sim import compiler

        try:
            return compiler.compiled(text, checked=compiler.wants_checks(), options=options)
        except compiler.CompileError as e:
            raise told(str(e), source) from None
    major, minor = machine.driver.Device(machine.use()).compute_capability()
    return cubin(text, f"sm_{major}{minor}", options, source)


def prepared(source: str) -> str:
    """Kernels get C's names, unless the source has templates or says itself which do; the first line stays line 1."""
    if re.search(r'extern\s+"C"|\btemplate\b', source):
        return f'#line 1 "kernel.cu"\n{source}'
    head = "".join(f'#line {i} "kernel.cu"\n{line}\n' for i, line in enumerate(source.split("\n"), 1)
                   if _INCLUDE.match(line))              # these must stay outside
    return f'{head}{WRAP[0]}#line 1 "kernel.cu"\n{source}{WRAP[1]}'


@functools.cache
def _version(nvcc: str) -> str:
    return subprocess.run([nvcc, "--version"], capture_output=True, encoding="utf-8", check=True).stdout


def cubin(text: str, arch: str, options: tuple[str, ...] = (), source: str = "") -> bytes:
    """What nvcc makes of a source for one kind of GPU, such as "sm_90"."""
    from flowedu.cuda.toolkit import toolkit

    found = toolkit()
    if found is None or found.nvcc is None:
        raise DeviceError("there is no nvcc", expected="CUDA's toolkit: CUDA_HOME, /usr/local/cuda, or nvcc on the PATH",
                          got="none of them", fix="`make test-cuda` installs one into .venv")

    def make(folder: Path) -> Path:
        (folder / "kernel.cu").write_text(text, encoding="utf-8")
        done = subprocess.run([str(found.nvcc), "-cubin", f"-arch={arch}", "-std=c++17", *options, "kernel.cu",
                               "-o", "kernel.cubin"], capture_output=True, encoding="utf-8", cwd=folder)
        if done.returncode:
            raise told(done.stderr + done.stdout, source or text)
        return folder / "kernel.cubin"

    return made_once("cubins", ".cubin", (text, arch, *options, _version(str(found.nvcc))), make,
                     f"compiling kernels for {arch} ...")


def told(said: str, source: str) -> KernelError:
    """What the compiler said, with the first line it complains about."""
    match, lines = _LINE.search(said), source.splitlines()
    number = min(int(match[1] or match[2]), len(lines)) if match else 0          # a missing brace is missed behind the end
    at = f"kernel.cu:{number}: {lines[number - 1].strip()}" if number else None
    short = said.strip()
    if len(short) > _MOST:
        short = f"{short[:short.rfind(chr(10), 0, _MOST)]}\n..."
    return KernelError("the CUDA C does not compile" + (f": {match[3]}" if match else ""), at=at, got=short)


def symbols(module: bytes) -> list[str]:
    """The names in a module's symbol table (an ELF file): those of its kernels are among them."""
    offset, = struct.unpack_from("<Q", module, 0x28)
    size, count = struct.unpack_from("<HH", module, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", module, offset + i * size) for i in range(count)]
    names = []
    for s in sections:
        if s[1] == 2:                                    # SHT_SYMTAB; its link is the section of the names
            strings = sections[s[6]][4]
            for at in range(s[4], s[4] + s[5], 24):
                begin = strings + struct.unpack_from("<I", module, at)[0]
                names.append(module[begin:module.index(b"\0", begin)].decode(errors="replace"))
    return names


_LETTERS = {"float": "f", "double": "d", "int": "i", "unsigned int": "j", "unsigned": "j", "char": "c", "bool": "b",
            "short": "s", "long": "l", "long long": "x", "unsigned char": "h", "unsigned long long": "y"}


def symbol(name: str, module: bytes) -> str:
    """The symbol of a kernel that the source calls `name`, such as "scale" or "scale<float>"."""
    there = symbols(module)
    if name in there:
        return name
    base, _, arguments = name.partition("<")
    start = f"_Z{len(base)}{base}"
    found = [s for s in there if s.startswith(start)]
    if arguments and len(found) > 1:
        letters = "".join(_LETTERS.get(a.strip(), f"Li{a.strip()}E") for a in arguments.rstrip("> ").split(","))
        found = [s for s in found if s.startswith(f"{start}I{letters}E")]
    return found[0] if len(found) == 1 else name
