"""Tree of a cell (worker.py): the library with stubs for all holes, and parts of flowedu_course."""
from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flowedu_course import course
from flowedu_course.teach import stubs

# Files of flowedu_course that the cell needs. THERE has those of this folder.
MODULES = ("course", "judge", "rules", "hunts", "source", "handout", "install", "kernels", "language",
           "blocks")
COURSE = {"__init__.py", "laws", *(f"{name}.py" for name in MODULES)}
THERE = ("__init__.py", "worker.py", "proxy.py", "protocol.py", "codec.py", "isolation.py")
LIBRARY, PACKAGE = course.file_of("flowedu").parents[1], Path(course.__file__).parent
SOURCES = shutil.ignore_patterns("__pycache__", "*.pyx", "*.pyc", "*.pxd", "*.pxi", "*.h", "*.cu")


def closed_package(folder: Path, holes: Iterable) -> Path:
    """Make a folder with flowedu, with stubs for all holes, and flowedu_course.

    flowedu_course does not contain the tools for instructors. Compiled files are hard links.
    """
    holes = list(holes)
    shutil.copytree(LIBRARY / "flowedu", folder / "flowedu", ignore=SOURCES, copy_function=_linked)
    to = folder / "flowedu_course"
    kept = COURSE | {course.file_of(h.module).name for h in holes if h.module.startswith("flowedu_course.")}
    shutil.copytree(PACKAGE, to, ignore=lambda d, names: _find_unneeded(d, names, kept),
                    copy_function=_linked)
    (to / "teach").mkdir()
    for name in THERE:
        shutil.copy(PACKAGE / "teach" / name, to / "teach")
    for file, text in stubs.blank({}, holes).items():
        new = folder / _below(file)
        new.unlink()
        new.write_text(text, encoding="utf-8")
    return folder


def _find_unneeded(folder: str, names: list[str], kept: set[str]) -> set[str]:
    return SOURCES(folder, names) | (set(names) - kept if Path(folder) == PACKAGE else set())


def _below(file: Path) -> Path:
    """Return the path of a module's file below the folder of its package."""
    return file.relative_to(PACKAGE.parent if file.is_relative_to(PACKAGE) else LIBRARY)


def _linked(a: str, b: str) -> None:
    try:
        os.link(a, b)
    except OSError:                                # on another file system
        shutil.copy2(a, b)


def module_codes(holes: Iterable, tree: Path) -> dict[str, Any]:
    """Return {module: code} of the library's modules with holes, compiled with the file names of the tree."""
    codes = {}
    for hole in holes:
        for file in {cut.file for cut in stubs.cuts(hole)}:
            name = ".".join(_below(file).with_suffix("").parts)
            codes[name] = compile(file.read_text("utf-8"), str(tree / _below(file)), "exec",
                                  dont_inherit=True, optimize=0)
    return codes
