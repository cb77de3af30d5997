"""Compiler of CUDA C: nvcc for a GPU, sim/compiler.py for the simulator. Results are cached on disk."""
from __future__ import annotations

import functools
import re
import struct
import subprocess
from pathlib import Path

from flowedu.cuda.folders import build_once
from flowedu.cuda.signature import WRAP
from flowedu.errors import DeviceError, KernelError

_LINE = re.compile(r"kernel\.cu(?::(\d+)(?::\d+)?: (?:fatal )?error: |"                        # g++
                   r"\((\d+)\): (?:catastrophic )?error:? ?(?:#\d+-D)?:? ?)(.*)")             # nvcc
_INCLUDE = re.compile(r"[ \t]*#[ \t]*include\b")
_MOST = 2000                                             # characters of a compiler's output


def compiled(source: str, machine, options: tuple[str, ...] = ()) -> bytes:
    """Return a module (a cubin) for the machine's device. Raises KernelError with the line of an error."""
    text = prepared(source)
    if machine.kind == "sim":
        from flowedu.cuda.sim import compiler

        try:
            return compiler.compiled(text, checked=compiler.wants_checks(), options=options)
        except compiler.CompileError as e:
            raise make_compile_error(str(e), source) from None
    major, minor = machine.driver.Device(machine.use()).compute_capability()
    return cubin(text, f"sm_{major}{minor}", options, source)


def prepared(source: str) -> str:
    """Give kernels C linkage, unless the source has templates or extern "C". The first line stays line 1."""
    if re.search(r'extern\s+"C"|\btemplate\b', source):
        return f'#line 1 "kernel.cu"\n{source}'
    head = "".join(f'#line {i} "kernel.cu"\n{line}\n' for i, line in enumerate(source.split("\n"), 1)
                   if _INCLUDE.match(line))              # includes must stay outside of extern "C"
    return f'{head}{WRAP[0]}#line 1 "kernel.cu"\n{source}{WRAP[1]}'


@functools.cache
def _version(nvcc: str) -> str:
    return subprocess.run([nvcc, "--version"], capture_output=True, encoding="utf-8", check=True).stdout


def cubin(text: str, arch: str, options: tuple[str, ...] = (), source: str = "") -> bytes:
    """Return the cubin that nvcc compiles for one architecture, such as "sm_90"."""
    from flowedu.cuda.toolkit import toolkit

    cuda_toolkit = toolkit()
    if cuda_toolkit is None or cuda_toolkit.nvcc is None:
        raise DeviceError("there is no nvcc", expected="CUDA's toolkit: CUDA_HOME, /usr/local/cuda, or nvcc "
                          "on the PATH", got="none of them", fix="`make test-cuda` installs one into .venv")

    def make(folder: Path) -> Path:
        (folder / "kernel.cu").write_text(text, encoding="utf-8")
        done = subprocess.run([str(cuda_toolkit.nvcc), "-cubin", f"-arch={arch}", "-std=c++17", *options,
                               "kernel.cu",
                               "-o", "kernel.cubin"], capture_output=True, encoding="utf-8", cwd=folder)
        if done.returncode:
            raise make_compile_error(done.stderr + done.stdout, source or text)
        return folder / "kernel.cubin"

    return build_once("cubins", ".cubin", (text, arch, *options, _version(str(cuda_toolkit.nvcc))), make,
                      f"compiling kernels for {arch} ...")


def make_compile_error(output: str, source: str) -> KernelError:
    """Return an error with the output of a compiler, at the first line that it reports."""
    match, lines = _LINE.search(output), source.splitlines()
    # A missing brace is reported behind the last line.
    number = min(int(match[1] or match[2]), len(lines)) if match else 0
    at = f"kernel.cu:{number}: {lines[number - 1].strip()}" if number else None
    short = output.strip()
    if len(short) > _MOST:
        short = f"{short[:short.rfind(chr(10), 0, _MOST)]}\n..."
    return KernelError("the CUDA C does not compile" + (f": {match[3]}" if match else ""), at=at, got=short)


def symbols(module: bytes) -> list[str]:
    """Return the names in a module's symbol table (an ELF file), which include its kernels."""
    offset, = struct.unpack_from("<Q", module, 0x28)
    size, count = struct.unpack_from("<HH", module, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", module, offset + i * size) for i in range(count)]
    names = []
    for s in sections:
        if s[1] == 2:                                    # SHT_SYMTAB; s[6] is the section of the names
            strings = sections[s[6]][4]
            for at in range(s[4], s[4] + s[5], 24):
                begin = strings + struct.unpack_from("<I", module, at)[0]
                names.append(module[begin:module.index(b"\0", begin)].decode(errors="replace"))
    return names


_LETTERS = {"float": "f", "double": "d", "int": "i", "unsigned int": "j", "unsigned": "j", "char": "c",
            "bool": "b",
            "short": "s", "long": "l", "long long": "x", "unsigned char": "h", "unsigned long long": "y"}


def symbol(name: str, module: bytes) -> str:
    """Return the symbol of a kernel that the source calls `name`, such as "scale" or "scale<float>"."""
    names = symbols(module)
    if name in names:
        return name
    base, _, arguments = name.partition("<")
    start = f"_Z{len(base)}{base}"
    matches = [s for s in names if s.startswith(start)]
    if arguments and len(matches) > 1:
        letters = "".join(_LETTERS.get(a.strip(), f"Li{a.strip()}E")
                          for a in arguments.rstrip("> ").split(","))
        matches = [s for s in matches if s.startswith(f"{start}I{letters}E")]
    return matches[0] if len(matches) == 1 else name
