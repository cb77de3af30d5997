"""Installation of a folder of answers, if FLOWEDU_HOLES=work is set (see flowedu/__init__.py).

In a student's tree, the answers in solutions/ run where the student has none.
"""
from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from flowedu.swap import RUNNING, SKIPPED, load, taking
from flowedu_course import course, kernels
from flowedu_course.handout import is_begun, stub, untouched


def install(folder: str | Path, only: Callable[[Any], bool] = lambda hole: True) -> None:
    """Make the library run the answers in this folder and in solutions/, without answers that were not begun.

    only: predicate of the holes whose answers in `folder` are installed. FLOWEDU_HOLES_ONLY="4.1 4.3"
    installs only these; with FLOWEDU_HOLES_SKIP=1 an answer that cannot be loaded counts as not begun.
    """
    stack, these = ExitStack(), os.environ.get("FLOWEDU_HOLES_ONLY", "").split()
    for hole in course.holes():
        chosen = not hole.is_hunt and (not these or hole.id in these)
        file = _file(hole, Path(folder), only) if chosen else None
        if file is None:
            continue
        if hole.kind == "kernel":
            if not untouched(hole, file.read_text(encoding="utf-8")) and not kernels.missing(hole):
                stack.enter_context(kernels.taking(hole, file))
                RUNNING.update(dict.fromkeys(hole.objects, file))
        else:
            try:
                stack.enter_context(taking(hole, load(file, importlib.import_module(hole.module))))
            except Exception as error:             # stop on any error, so that no mixed library runs
                why = (f"{type(error).__name__}: {str(error).partition(chr(10))[0]}; `make check "
                       f"EX={hole.id}` shows the line")
                if os.environ.get("FLOWEDU_HOLES_SKIP"):
                    SKIPPED[file] = why
                    continue
                stack.close()
                raise SystemExit(f"{file}: {why}") from None
            RUNNING.update({f"{hole.module}.{path}": file for path in hole.objects})
    install.held = stack.pop_all()                 # never exited


def _file(hole, folder: Path, only: Callable[[Any], bool]) -> Path | None:
    """Return the student's answer, else the one in solutions/ if the library has a stub there, else None."""
    file = folder / hole.file
    solution = hole.solution if hole.withheld and hole.kind != "kernel" else None
    if file.exists() and only(hole) and (hole.kind == "kernel" or is_begun(file)):
        unchanged = solution and file.read_text(encoding="utf-8") == stub(hole)
        return solution if unchanged else file
    return solution
