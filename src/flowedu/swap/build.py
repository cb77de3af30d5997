"""Compiler for small Cython sources in lessons, with a score of each line that calls Python.

    m = build(''' def twice(double x): return 2 * x ''')
    m.twice(4)                                  # 8.0
    [line.score for line in annotated(source)]  # the scores behind Cython's yellow lines: 0 is plain C

It uses the Cython and the C compiler that built flowedu. Results are cached by the text of the source.
"""
from __future__ import annotations

import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from flowedu.cuda.folders import build_once
from flowedu.errors import ArgumentError, KernelError, UnsupportedError, format_value

KERNELS = Path(__file__).resolve().parents[1] / "_kernels"
# The same as in setup.py; tests/learn/test_build.py compares them.
FLAGS = ("-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math",
         "-ffp-contract=fast")
ISA = {"base": (), "v3": ("-mavx2", "-mfma", "-mbmi2", "-mf16c")}
ISA["v4"] = (*ISA["v3"], "-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq", "-mprefer-vector-width=512")
_DIRECTIVES = {"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True,
               "initializedcheck": False}
_SCORED = re.compile(r'<pre class="cython line score-(\d+)"[^>]*>[^<]*<span class="">(\d+)</span>')
_ERROR = re.compile(r"kernel\.pyx:(\d+):\d+: (?!.*warning)(.*)")


class Line(NamedTuple):
    """Line of a Cython source. score: weighted number of Python API calls in its C code; 0: none."""

    number: int
    score: int
    text: str


def build(source: str, isa: str | None = None, flags: Sequence[str] = FLAGS) -> ModuleType:
    """Compile a Cython source, and return its module.

    The source may cimport the same modules as kernels: `from flowedu._kernels.core.abi cimport *`.

    Args:
        isa: instruction set: "base", "v3", or "v4"; default: the one that flowedu uses on this machine.
        flags: flags of the C compiler; default: those of flowedu's kernels.

    Raises:
        KernelError: the source does not compile.
        UnsupportedError: Cython or a C compiler is missing, or this processor cannot run code for `isa`.
    """
    from flowedu import _kernels

    isa = _kernels.ISA if isa is None else isa
    if isa not in ISA:
        raise ArgumentError(f"build: there is no instruction set {isa!r}", expected=", ".join(ISA),
                            got=repr(isa))
    if isa != "base" and (lacks := _kernels.NEEDS[isa] - _kernels.cpu_flags()):
        raise UnsupportedError(f"build: this processor cannot run {isa}",
                               expected=" ".join(sorted(_kernels.NEEDS[isa])),
                               got=f"it lacks {' '.join(sorted(lacks))}", fix='isa="base"')
    options = (*flags, *ISA[isa])
    name, binary = _compile_cached(source, options)
    if name not in sys.modules:
        sys.modules[name] = _load(name, binary)
    return sys.modules[name]


def compiled(source: str) -> None:
    """Compile as `build` does and cache the result, without running it. Raises the same errors."""
    from flowedu import _kernels

    _compile_cached(source, (*FLAGS, *ISA[_kernels.ISA]))


def _compile_cached(source: str, options: Sequence[str]) -> tuple[str, bytes]:
    """Return (module name, compiled module), cached on disk. b"" if the module is already loaded."""
    name = "kernel_" + hashlib.sha256("\0".join((_text(source), *options)).encode()).hexdigest()[:16]

    def make(folder: Path) -> Path:
        c, page = _translate(source, folder, name)
        build_once("cython", ".html", (source, *_versions()), lambda _: page)           # for annotated()
        return _compile_c(c, folder / f"{name}.so", options)

    return name, b"" if name in sys.modules else build_once("cython", ".so", (name, *_versions()), make)


def annotated(source: str) -> list[Line]:
    """Return every line of a Cython source with its score. Raises KernelError if it does not compile."""
    page = build_once("cython", ".html", (_text(source), *_versions()),
                      lambda folder: _translate(source, folder, "kernel")[1]).decode()
    scores = {int(n): int(score) for score, n in _SCORED.findall(page)}
    return [Line(i, scores.get(i, 0), text) for i, text in enumerate(source.splitlines(), 1)]


def loops(lines: Sequence[Line]) -> list[Line]:
    """Return the lines that run more than once: heads of loops, and the lines indented below them."""
    repeated: list[Line] = []
    heads: list[int] = []                               # indents of the enclosing loops
    for line in lines:
        if not line.text.strip() or line.text.lstrip().startswith("#"):
            continue
        indent = len(line.text) - len(line.text.lstrip())
        heads = [h for h in heads if h < indent]
        is_head = re.match(r"\s*(for|while)\b", line.text)
        if heads or is_head:
            repeated.append(line)
        if is_head:
            heads.append(indent)
    return repeated


# ---- steps of a build
def _text(source: str) -> str:
    if not isinstance(source, str):
        raise ArgumentError("build: the source is not a text", expected="Cython, as a str",
                            got=format_value(source))
    return source


def _compiler() -> list[str]:
    command = (os.environ.get("CC") or "cc").split()
    if shutil.which(command[0]) is None:
        raise UnsupportedError("build: there is no C compiler", expected="the one that built flowedu",
                               got=command[0], fix="install gcc, or say which one to use: CC=/path/to/gcc")
    return command


def _versions() -> tuple[str, ...]:
    try:
        import Cython
    except ImportError:
        raise UnsupportedError("build: Cython is not installed", expected="the build tools of flowedu",
                               got="no Cython", fix="pip install cython") from None
    headers = sorted(p for f in ("core", "ops", "fast") for p in (KERNELS / f).glob("*")
                     if p.suffix in (".h", ".pxd"))
    content = hashlib.sha256(b"\0".join(p.read_bytes() for p in headers)).hexdigest()
    return Cython.__version__, sys.version, " ".join(_compiler()), content


def _translate(source: str, folder: Path, name: str) -> tuple[Path, Path]:
    """Translate a source to C, and return the paths of the C file and of the annotated page."""
    from Cython.Compiler.Main import CompilationOptions, compile_single, default_options

    pyx, c = folder / "kernel.pyx", folder / f"{name}.c"
    pyx.write_text(_text(source), encoding="utf-8")
    options = CompilationOptions(default_options, compiler_directives=_DIRECTIVES, output_file=str(c),
                                 annotate=True, include_path=[str(KERNELS.parents[1])])
    messages = io.StringIO()
    with contextlib.redirect_stderr(messages):
        try:
            result = compile_single(str(pyx), options, full_module_name=name)
            failed = result.num_errors
        except Exception as error:                     # Cython raises some errors instead of counting them
            failed = True
            messages.write(str(error))
    if failed:
        raise _compile_error(messages.getvalue(), source)
    return c, c.with_suffix(".html")


def _compile_error(messages: str, source: str) -> KernelError:
    """Return the error for Cython's messages, with the first line that they refer to."""
    match, lines = _ERROR.search(messages), source.splitlines()
    number = int(match[1]) if match else 0
    at = f"kernel.pyx:{number}: {lines[number - 1].strip()}" if 0 < number <= len(lines) else ""
    return KernelError("the Cython does not compile" + (f": {match[2]}" if match else ""), at=at,
                       got="" if match else messages.strip()[-1000:])


def _compile_c(c: Path, so: Path, options: Sequence[str]) -> Path:
    mac = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    done = subprocess.run([*_compiler(), "-shared", "-fPIC", *mac, *options, "-w",
                           f"-I{sysconfig.get_path('include')}",
                           *(f"-I{KERNELS / f}" for f in ("core", "ops", "fast")), str(c), "-o", str(so)],
                          capture_output=True, encoding="utf-8")
    if done.returncode:
        raise KernelError("the C that Cython made does not compile", got=done.stderr.strip()[-1000:], at="")
    return so


def _load(name: str, data: bytes) -> ModuleType:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{name}.so")
        file.write_bytes(data)
        spec: Any = importlib.util.spec_from_file_location(
            name, file, loader=importlib.machinery.ExtensionFileLoader(name, str(file)))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module
