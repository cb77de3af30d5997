"""Installs a folder of answers in the library: FLOWEDU_HOLES=work, which flowedu/__init__.py reads."""
from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from flowedu.learn import course, kernels
from flowedu.learn.handout import begun, untouched
from flowedu.learn.swap import RUNNING, SKIPPED, load, taking


def install(folder: str | Path, only: Callable[[Any], bool] = lambda hole: True) -> None:
    """From here on the library runs the answers in this folder; those that were not begun are its own. only:
    which holes. FLOWEDU_HOLES_ONLY="4.1 4.3": no others. FLOWEDU_HOLES_SKIP=1: one that cannot be loaded counts as not
    begun."""
    stack, these = ExitStack(), os.environ.get("FLOWEDU_HOLES_ONLY", "").split()
    for hole in course.holes():
        file = Path(folder, hole.file)
        if not file.exists() or these and hole.id not in these or not only(hole):
            continue
        if hole.kind == "kernel":
            if not untouched(hole, file.read_text(encoding="utf-8")) and not kernels.missing(hole):
                stack.enter_context(kernels.taking(hole, file))
                RUNNING.update(dict.fromkeys(hole.objects, file))
        elif begun(file):
            try:
                stack.enter_context(taking(hole, load(file, importlib.import_module(hole.module))))
            except Exception as error:             # whatever it is, nothing else of the library shall run then
                why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}; `make check EX={hole.id}` says where"
                if os.environ.get("FLOWEDU_HOLES_SKIP"):
                    SKIPPED[file] = why
                    continue
                stack.close()
                raise SystemExit(f"{file}: {why}") from None
            RUNNING.update({f"{hole.module}.{path}": file for path in hole.objects})
    install.held = stack.pop_all()                 # never left
