"""Build of the simulator: g++ compiles runtime/ to `libcuda.so.1`, once for each version of its files."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flowedu.cuda.folders import cache_folder
from flowedu.cuda.sim.compiler import HERE, gxx, identity
from flowedu.errors import DeviceError

FLAGS = ["-std=c++17", "-O2", "-g1", "-fPIC", "-Wall", "-fvisibility=hidden", "-fno-strict-aliasing",
         "-U_FORTIFY_SOURCE"]
DECLARED = re.compile(r"\bCUresult\s+(?:\w+\s+)?(cu[A-Z]\w+)\s*\(")
NVCC = """#!/bin/sh
# Replaces nvcc for PyCUDA: its folder is first in PATH.
export PYTHONPATH="${FLOWEDU_CUDA_PATH}${PYTHONPATH:+:$PYTHONPATH}"
exec "${FLOWEDU_CUDA_PYTHON:-python3}" -m flowedu.cuda.sim.nvcc "$@"
"""


def library() -> Path:
    """Return the path of the simulator's library for these source files, which may not exist yet."""
    return cache_folder() / f"sim-{identity(runtime=True)}" / "libcuda.so.1"


def unsupported(headers: Path) -> str:
    """Return C source that defines every driver function weakly, to return CUDA_ERROR_NOT_SUPPORTED."""
    text = subprocess.run([*gxx(), "-E", "-P", "-x", "c++", "-", f"-I{headers}"], check=True,
                          capture_output=True, encoding="utf-8", input="#include <cuda.h>\n").stdout
    names = sorted(set(DECLARED.findall(text)) | {"cuProfilerInitialize"})
    return "".join(f"__attribute__((weak)) int {name}(void) {{ return 801; }}\n" for name in names)


def build(headers: Path) -> Path:
    """Return the path of the simulator's library, which is built unless it exists.

    Raises DeviceError: g++ is missing, or it failed.
    """
    path = library()
    if path.exists():
        return path
    compiler = gxx()
    if not shutil.which(compiler[0]):
        raise DeviceError("the CUDA simulator needs a C++ compiler", expected="g++",
                          got=f"no {compiler[0]!r} on the PATH",
                          fix="on Debian or Ubuntu: apt-get install g++; or say which one: CXX=/path/to/g++")
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=path.parent.parent, prefix="building-"))
    try:
        (folder / "rest.c").write_text(unsupported(headers), encoding="utf-8")
        commands = [[*compiler, *FLAGS, f"-I{headers}", "-c", str(p), "-o", str(folder / f"{p.stem}.o")]
                    for p in sorted((HERE / "runtime").glob("*.cpp"))]
        commands.append([*compiler, "-w", "-x", "c", "-fPIC", "-c", str(folder / "rest.c"), "-o",
                         str(folder / "rest.o")])
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(_run, commands))
        _run([*compiler, "-shared", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic-functions",
              "-o", str(folder / "libcuda.so.1"), *(c[-1] for c in commands), "-ldl", "-lpthread"])
        for o in folder.glob("*.[oc]"):
            o.unlink()
        (folder / "libcuda.so").symlink_to("libcuda.so.1")         # the name that PyCUDA is linked with
        (folder / "bin").mkdir()
        (folder / "bin" / "nvcc").write_text(NVCC, encoding="utf-8")
        (folder / "bin" / "nvcc").chmod(0o755)
        folder.chmod(0o755)
        try:
            folder.rename(path.parent)
        except OSError:
            if not path.exists():                       # another process was faster, with the same result
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return path


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise DeviceError("the CUDA simulator could not be compiled",
                          expected="g++ 9 or newer, and CUDA's headers",
                          got=f"{' '.join(command)}\n{done.stderr[-3000:]}")
    if done.stderr:
        print(done.stderr, file=sys.stderr)
