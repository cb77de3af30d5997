"""A `build_ext` command for setuptools that compiles only changed extensions, and each only once.

Cython lists the files that a .pyx includes (.dep), and the C compiler the includes of a C file (.d). Each
result is stored with a digest of the contents of these files, the commands, and the versions of the tools.
Dates do not count, so a checkout that is copied, moved, or cloned again compiles nothing, and a change of a
header compiles the files that include it. `make`, `pip install -e .`, and `pip wheel .` all use this command
and share the results.
"""
from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import Cython
import numpy
from setuptools import Extension
from setuptools.command.build_ext import build_ext

# Digests are independent of these paths, because pip builds with its own copies of NumPy and Cython.
PLACES = {"@NUMPY": os.path.dirname(numpy.__file__), "@CYTHON": os.path.dirname(Cython.__file__)}


def _placeless(text: str) -> str:
    for name, path in PLACES.items():
        text = text.replace(path, name)
    return text


def _placed(text: str) -> str:
    for name, path in PLACES.items():
        text = text.replace(name, path)
    return text


@functools.cache
def _content(path: str) -> str:
    """Return the digest of a file, or "not there" if it is missing."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return "not there"


def _digest(command: Iterable[Any], files: Iterable[str]) -> str:
    """Return the digest of a command and of the contents of files."""
    lines = [repr(command), *sorted(f"{f} {_content(f)}" for f in files)]
    return hashlib.sha256(_placeless("\n".join(lines)).encode()).hexdigest()


def _fresh(made: Path, command: Any) -> bool:
    """Return True if `made` is the result of this command on the current contents of its files."""
    kept = made.with_name(made.name + ".digest")
    if not (made.is_file() and kept.is_file()):
        return False
    digest, *files = kept.read_text(encoding="utf-8").splitlines()
    return digest == _digest(command, map(_placed, files))


def _keep(made: Path, rule: Path, command: Any) -> None:
    """Write the digest of a result, and the files in the make rule of the compiler, next to the result."""
    text = rule.read_text(encoding="utf-8").partition(": ")[2].replace("\\\n", " ").replace("\\ ", "\0")
    here = str(Path.cwd()) + os.sep
    files = [_placeless(os.path.abspath(word.replace("\0", " "))).removeprefix(here) for word in text.split()]
    made.with_name(made.name + ".digest").write_text("\n".join([_digest(command, map(_placed, files)),
                                                                *files]), "utf-8")
    rule.unlink()


def _cythonize(pyx: str, name: str, c_file: Path, options: dict) -> None:
    """Translate one .pyx to C, in a worker process. Raises RuntimeError after Cython's messages."""
    from Cython.Compiler import Options
    from Cython.Compiler.Main import compile as to_c

    Options.docstrings = True
    c_file.parent.mkdir(parents=True, exist_ok=True)
    done = to_c(pyx, full_module_name=name, output_file=str(c_file), depfile=True, **options)
    if done.num_errors:
        raise RuntimeError(f"Error compiling Cython file {pyx}")


def _copy(src: Path, dst: Path) -> None:
    """Copy a file under a temporary name and rename it, so that running processes keep the old one."""
    if dst.is_file() and dst.read_bytes() == src.read_bytes():
        return
    dst.parent.mkdir(parents=True, exist_ok=True)
    beside = dst.with_name(dst.name + f".{os.getpid()}")
    shutil.copyfile(src, beside)
    os.chmod(beside, 0o755)
    beside.replace(dst)


def _progress(total: int, what: str):
    """Return a progress bar on file descriptor 3, the terminal passed by tools/quietly, or None."""
    try:
        from tqdm import tqdm
        out = os.fdopen(os.dup(3), "w", encoding="utf-8")
    except (ImportError, OSError):
        return None
    return tqdm(total=total, desc=what, file=out, disable=None, leave=False, unit="file", dynamic_ncols=True,
                bar_format="  {desc} {bar} {n_fmt} of {total_fmt}, {elapsed}")


class BuildOnce(build_ext):
    """Build command for setup.py, which defines `folder` for results and `cython` for Cython's options."""

    folder = Path("build/kernels")

    def cython(self, ext: Extension) -> dict:
        raise NotImplementedError("the setup script says how Cython is called")

    def build_extensions(self) -> None:
        with ProcessPoolExecutor(self._jobs()) as pool:
            self._to_c(pool)
        stale = [ext for ext in self.extensions if not _fresh(self._made(ext), self._command(ext))]
        # Start with the largest C files; otherwise, the last one could run alone for a long time.
        stale.sort(key=lambda ext: -self._c_file(ext).stat().st_size * (1 + len(ext.extra_compile_args)))
        bar = _progress(len(stale), "compiling the kernels") if stale else None
        with ThreadPoolExecutor(self._jobs()) as pool:
            for _ in pool.map(self._compile, stale):
                if bar:
                    bar.update()
        if bar:
            bar.close()
        for ext in self.extensions:
            _copy(self._made(ext), Path(self.build_lib, self._file(ext)))

    def copy_extensions_to_source(self) -> None:
        """Copy changed extensions into the source tree. Unchanged files keep their dates."""
        build_py = self.get_finalized_command("build_py")
        for ext in self.extensions:
            inplace, regular = self._get_inplace_equivalent(build_py, ext)
            _copy(Path(regular), Path(inplace))

    def _to_c(self, pool: ProcessPoolExecutor) -> None:
        todo = {}
        for ext in self.extensions:
            pyx, c_file, options = ext.sources[0], self._c_file(ext), self.cython(ext)
            command = ["cython", Cython.__version__, self._module(ext), sorted(options.items())]
            if c_file not in todo and not _fresh(c_file, command):
                todo[c_file] = (pyx, self._module(ext), options, command)
        bar = _progress(len(todo), "Cython to C") if todo else None
        runs = {c: pool.submit(_cythonize, pyx, name, c, options)
                for c, (pyx, name, options, _) in sorted(todo.items(),
                                                         key=lambda it: -Path(it[1][0]).stat().st_size)}
        for c_file, run in runs.items():
            run.result()
            _keep(c_file, c_file.with_name(c_file.name + ".dep"), todo[c_file][3])
            if bar:
                bar.update()
        if bar:
            bar.close()

    def _compile(self, ext: Extension) -> None:
        made = self._made(ext)
        rule = made.with_suffix(".d")
        made.parent.mkdir(parents=True, exist_ok=True)
        objects = self.compiler.compile(
            [str(self._c_file(ext))], output_dir=str(made.parent), macros=list(ext.define_macros),
            include_dirs=ext.include_dirs, extra_postargs=[*ext.extra_compile_args, "-MMD", "-MF", str(rule)])
        self.compiler.link_shared_object(objects, str(made), extra_postargs=ext.extra_link_args or [],
                                         libraries=self.get_libraries(ext), build_temp=str(self.folder))
        for path in objects:
            os.remove(path)
        _keep(made, rule, self._command(ext))

    def _command(self, ext: Extension) -> list:
        return ([sys.version, sysconfig.get_platform(), self.compiler.compiler_so, self.compiler.linker_so,
                 _version(
                     self.compiler.compiler_so[0]), ext.define_macros, ext.include_dirs,
                 ext.extra_compile_args, ext.extra_link_args])

    def _jobs(self) -> int:
        return self.parallel if isinstance(self.parallel, int) and self.parallel > 1 else os.cpu_count() or 1

    def _file(self, ext: Extension) -> str:
        return self.get_ext_filename(self.get_ext_fullname(ext.name))

    def _made(self, ext: Extension) -> Path:
        return self.folder / self._file(ext)

    @staticmethod
    def _module(ext: Extension) -> str:
        """Return the name of the C module, which the extensions for several instruction sets share."""
        return ext.sources[0].removeprefix("src/").removesuffix(".pyx").replace("/", ".")

    def _c_file(self, ext: Extension) -> Path:
        return self.folder / "c" / (self._module(ext) + ".c")


@functools.cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True,
                          encoding="utf-8").stdout.partition("\n")[0]
