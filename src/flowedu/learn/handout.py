"""Work files as they are handed out: the task, then a function that raises, or a wasteful one, or a kernel without its
loops."""
from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

from flowedu.learn.language import page, tr
from flowedu.learn.source import around, function

NOTES = {".pyx": re.compile(r'\A\s*""".*?"""|#[^\n]*', re.S), ".cu": re.compile(r"/\*.*?\*/|//[^\n]*", re.S)}
NOTES[".h"] = NOTES[".cu"]                         # comments, by the ending of a kernel's file


def notes(hole, at_hand: Sequence[str] = ()) -> list[str]:
    """What a work file begins with."""
    lines = [tr(hole.title), "", *tr(hole.task).strip().splitlines()]
    if hole.example:
        lines += ["", *("    " + t for t in tr(hole.example).strip().splitlines())]
    if at_hand:
        lines += ["", *textwrap.wrap(tr("at hand: {names}", names=", ".join(at_hand)), 120)]
    first = [tr("after  {ids}: its laws run them, and here they are open", ids=", ".join(hole.first))] if hole.first else []
    return [*lines, "", tr("{about}, {points} points", about=tr(hole.about), points=hole.points), *first,
            tr("read   {page}", page=page(hole))]


def stub(hole) -> str:
    """The work file as it is handed out: the task, then a function that raises, or a wasteful one."""
    if hole.kind == "kernel":
        return _of_kernel(hole)
    source = around(hole).read_text(encoding="utf-8")
    text = '"""' + "\n".join(notes(hole, hole.at_hand)) + '\n"""\n\n\n'
    if hole.stub:
        return text + (hole.folder / hole.stub).read_text(encoding="utf-8")
    return text + "\n\n".join(
        f"def {name}({_parameters(source, path) if given is None else given}):\n"
        f"    raise NotImplementedError(\"{hole.id}: your turn\")\n"
        for path, name, given in zip(hole.objects, hole.functions, hole.parameters or [None] * len(hole.objects)))


def _parameters(source: str, path: str) -> str:
    """As the library writes them."""
    return ast.unparse(function(source, path).args)


def _of_kernel(hole) -> str:
    """The task, then the kernel without its loops."""
    text = (hole.folder / hole.stub).read_text(encoding="utf-8")
    if hole.ending == ".pyx":
        return '"""' + "\n".join(notes(hole)) + f'\n"""\n{text}'
    return "/* " + "\n".join(notes(hole)) + f"\n */\n{text}"


def begun(file: Path) -> bool:
    """Whether somebody wrote into a work file of Python: its stub raises "your turn"."""
    return "your turn" not in file.read_text(errors="replace", encoding="utf-8")


def untouched(hole, text: str) -> bool:
    """Whether of a kernel's file only comments differ from what was handed out."""
    code = [NOTES[hole.ending].sub("", t).split() for t in (text, (hole.folder / hole.stub).read_text(encoding="utf-8"))]
    return code[0] == code[1]
