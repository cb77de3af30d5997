"""Initial work files: the task, then the code that the answer replaces.

This code is a function that raises, a wasteful function, or a kernel without its loops.
"""
from __future__ import annotations

import ast
import re
from pathlib import Path

from flowedu_course.language import page, tr
from flowedu_course.source import function, same_code

NOTES = {".pyx": re.compile(r'\A\s*""".*?"""|#[^\n]*', re.S), ".cu": re.compile(r"/\*.*?\*/|//[^\n]*", re.S)}
NOTES[".h"] = NOTES[".cu"]                         # comments, by file ending


def notes(hole) -> list[str]:
    """Return the lines at the top of a work file: title, task, example, names to use, and pages to read."""
    lines = [tr(hole.title), "", *tr(hole.task).strip().splitlines()]
    if hole.example:
        lines += ["", *("    " + t for t in tr(hole.example).strip().splitlines())]
    if hole.uses:
        lines += ["", tr("names you can use:"), *("    " + tr(t) for t in hole.uses)]
    lines += ["", describe_effort(hole)]
    if hole.is_hunt and not hole.is_compiled:
        answers = "FLOWEDU_HOLES=work " if hole.first else ""
        lines.append(tr("run    {command}", command=f"{answers}.venv/bin/python work/{hole.file}"))
    if hole.first:
        lines.append(tr("after  {ids}: the laws call their functions, which are open here",
                        ids=", ".join(hole.first)))
    return [*lines, tr("read   {page}", page=page(hole))]


def describe_effort(hole, into: str = "") -> str:
    """Return the lines and minutes that an exercise takes, and its points."""
    about = tr(hole.about, into)
    if hole.is_hunt:
        return tr("{about}, no points", into, about=about)
    return tr("{about}, {points} points", into, about=about, points=hole.points)


def stub(hole) -> str:
    """Return the initial work file: the task, then a function that raises or a wasteful one."""
    if hole.is_compiled:
        return _of_kernel(hole)
    source = hole.source.read_text(encoding="utf-8")
    text = '"""' + "\n".join(notes(hole)) + '\n"""\n\n\n'
    if hole.stub:
        return text + (hole.folder / hole.stub).read_text(encoding="utf-8")
    return text + "\n\n".join(
        f"def {name}({_parameters(source, path) if given is None else given}):\n"
        f"    raise NotImplementedError(\"{hole.id}: your turn\")\n"
        for path, name, given in zip(hole.objects, hole.functions, hole.parameters
                                     or [None] * len(hole.objects)))


def _parameters(source: str, path: str) -> str:
    """Return the parameters as in the library's source."""
    return ast.unparse(function(source, path).args)


def _of_kernel(hole) -> str:
    """Return the task, then the kernel without its loops."""
    text = (hole.folder / hole.stub).read_text(encoding="utf-8")
    if hole.ending == ".pyx":
        return '"""' + "\n".join(notes(hole)) + f'\n"""\n{text}'
    return "/* " + "\n".join(notes(hole)) + f"\n */\n{text}"


def is_begun(file: Path) -> bool:
    """Return True if a Python work file was edited, so that the stub's "your turn" is gone."""
    return "your turn" not in file.read_text(errors="replace", encoding="utf-8")


def untouched(hole, text: str) -> bool:
    """Return True if a kernel's file differs from the stub only in comments and spaces."""
    code = [NOTES[hole.ending].sub("", t).split()
            for t in (text, (hole.folder / hole.stub).read_text(encoding="utf-8"))]
    return code[0] == code[1]


def is_plain(hole, file: Path) -> bool:
    """Return True if a file still has the right function that was handed out (see Hole.plain)."""
    handed_out = (hole.folder / hole.plain).read_text("utf-8")
    return same_code(file.read_text("utf-8"), handed_out, hole.functions[0])
