"""Initial work files: the task, then the code that the answer replaces.

This code is a function that raises, a wasteful function, or a kernel without its loops.
"""
from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from flowedu_course.language import page, spans, tr
from flowedu_course.source import free_names, function, import_lines, same_code

NOTES = {".pyx": re.compile(r'\A\s*""".*?"""|#[^\n]*', re.S), ".cu": re.compile(r"/\*.*?\*/|//[^\n]*", re.S)}
NOTES[".h"] = NOTES[".cu"]                         # comments, by file ending
# Helpers of the library that are a part of an answer (4.9, 6.9): editors do not suggest them.
PARTS_OF_ANSWERS = {"locate_rows", "substitute"}


def notes(hole, work: str | Path = "work") -> list[str]:
    """Return the lines at the top of a file in `work`: task, example, names to use, pages to read."""
    lines = [tr(hole.title), "", *tr(hole.task).strip().splitlines()]
    if hole.example:
        lines += ["", *("    " + t for t in tr(hole.example).strip().splitlines())]
    if hole.uses:
        lines += ["", tr("names you can use:"), *("    " + tr(t) for t in hole.uses)]
    lines += ["", describe_effort(hole)]
    if hole.is_hunt and not hole.is_compiled:
        answers = f"FLOWEDU_HOLES={work} " if hole.first else ""
        lines.append(tr("run    {command}", command=f"{answers}.venv/bin/python {work}/{hole.file}"))
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


def stub(hole, work: str | Path = "work") -> str:
    """Return the initial file in `work`: the task, then a function that raises or a wasteful one."""
    if hole.is_compiled:
        return _of_kernel(hole)
    source = hole.source.read_text(encoding="utf-8")
    if hole.stub:
        code = (hole.folder / hole.stub).read_text(encoding="utf-8")
    else:
        given = hole.parameters or [_parameters(source, path) for path in hole.objects]
        body = f'    raise NotImplementedError("{hole.id}: your turn")\n'
        code = "\n\n".join(f"def {name}({parameters}):\n{body}"
                           for name, parameters in zip(hole.functions, given))
    return '"""' + "\n".join(notes(hole, work)) + f'\n"""\n{_for_editors(hole, source, code)}\n\n{code}'


def _for_editors(hole, source: str, code: str) -> str:
    """Return imports that only editors and type checkers read. An answer can use the names without them."""
    if hole.is_hunt:                               # a whole program
        return ""
    listed = re.findall(r"^\w+", "\n".join(hole.uses), re.M)
    names = {*hole.at_hand, *listed, *free_names(code)} - PARTS_OF_ANSWERS
    lines = import_lines(source, hole.module, names)
    if not lines:
        return ""
    comment = tr("for your editor; these names are available without import")
    return "\n".join(["from __future__ import annotations", "", "from typing import TYPE_CHECKING", "",
                      f"if TYPE_CHECKING:  # {comment}", *("    " + t for t in lines), ""])


def _parameters(source: str, path: str) -> str:
    """Return the parameters as in the library's source."""
    return ast.unparse(function(source, path).args)


def _of_kernel(hole) -> str:
    """Return the task, then the kernel without its loops."""
    text = (hole.folder / hole.stub).read_text(encoding="utf-8")
    if hole.ending == ".pyx":
        return '"""' + "\n".join(notes(hole)) + f'\n"""\n{text}'
    return "/* " + "\n".join(notes(hole)) + f"\n */\n{text}"


def describe_stubs(holes: Sequence) -> list[str]:
    """Return lines about the initial code in the work files of these exercises."""
    kernels = [h.id for h in holes if h.kind == "kernel"]
    hunts = [h.id for h in holes if h.is_hunt]
    wasteful = [h.id for h in holes if not h.is_separate and h.stub]
    raising = [h.id for h in holes if not h.is_separate and not h.stub]
    lines = [tr("each file has the task, and below it:")]
    if raising:
        lines.append(tr("  a function that raises NotImplementedError: {ids}", ids=spans(raising)))
    if wasteful:
        lines.append(tr("  a right but wasteful function, to be improved: {ids}", ids=spans(wasteful)))
    if kernels:
        lines.append(tr("  a kernel without its loops: {ids}", ids=spans(kernels)))
    if hunts:
        lines.append(tr("  a program or kernel with one fault: {ids}", ids=spans(hunts)))
    return lines


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
