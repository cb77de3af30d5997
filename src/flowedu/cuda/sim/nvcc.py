"""Replacement of nvcc for PyCUDA: `nvcc --cubin -I... kernel.cu` writes kernel.cubin, for the simulator."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from flowedu.cuda.sim import compiler

TAKES_A_VALUE = ("-I", "-D", "-U", "-isystem", "-include")


def supported_options(arguments: list[str]) -> tuple[str, ...]:
    """Return the options that g++ supports: folders and macros."""
    options, value = [], False
    for a in arguments:
        if value or a.startswith(TAKES_A_VALUE):
            options.append(a)
        value = not value and a in TAKES_A_VALUE
    return tuple(options)


def main(arguments: list[str]) -> int:
    """Compile a file, and return the exit status."""
    checked = "--checked" in arguments or compiler.wants_checks()
    if "--version" in arguments:
        print(f"nvcc: flowedu's CUDA simulator {compiler.identity()} {'checked' if checked else 'plain'}")
        return 0
    files = [a for a in arguments if a.endswith(".cu")]
    if len(files) != 1:
        print("nvcc of flowedu's CUDA simulator compiles one .cu file", file=sys.stderr)
        return 2
    options = supported_options(arguments)
    if "--preprocess" in arguments or "-E" in arguments:
        return subprocess.call([*compiler.gxx(), "-E", "-P", "-w", *compiler.BEFORE, *options, "-x", "c++",
                                files[0]])
    out = (arguments[arguments.index("-o") + 1] if "-o" in arguments
           else str(Path(files[0]).with_suffix(".cubin")))
    try:
        data = compiler.compiled(Path(files[0]).read_text(encoding="utf-8"), checked=checked, options=options)
    except compiler.CompileError as e:
        print(e, file=sys.stderr, end="")
        return 1
    Path(out).write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
