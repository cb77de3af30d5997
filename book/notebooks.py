"""Lessons and whole programs of the gallery as Jupyter notebooks: `make notebooks` writes build/notebooks.

A page is a notebook: each Python block a cell, with what it printed when it was run for the book; all else is
text. Blocks that must fail have the tag `raises-exception`, those that need a GPU `skip-execution`, which
nbclient knows. A program that does not ask where its file lies is one, too: its first words as text, then a
cell for its imports and one a definition.
"""
from __future__ import annotations

import ast
import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

import outputs
import pages

from flowedu.errors.files import write_text

ROOT = pages.ROOT
OUT = ROOT / "build" / "notebooks"
GALLERY = ROOT / "chapters" / "gallery"
BESIDE = ("curves",)                           # what programs of the gallery import lies beside them
PROGRAMS = [p for p in sorted(GALLERY.glob("*.py")) if p.stem not in BESIDE
            and "__file__" not in p.read_text("utf-8")]
LINK = re.compile(r"\]\(([^)#:\s]+)((?:#[^)\s]*)?\))")
ARGUMENTS = "parse_args("                      # a notebook has no command line
HERE = 'Its arguments stand in the last cell: `["--quick"]` here, `[]` for the whole of it.'
TAGS = {"error": "raises-exception", "needs": "skip-execution"}


def place(page: Path, out: Path = OUT) -> Path:
    """Where the notebook of a page or a program lies."""
    return out / page.parent.name / f"{page.stem}.ipynb"


def notebook(cells: Iterable[dict], tongue: str = "en") -> dict:
    """nbformat 4.5. The kernel is that of the environment that flowedu is installed in."""
    named = [{**cell, "id": f"cell-{i}"} for i, cell in enumerate(cells)]
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": named, "metadata": {"kernelspec": python, "language_info": {"name": "python"},
                                         "language": tongue},
            "nbformat": 4, "nbformat_minor": 5}


def text_cell(text: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip("\n")}


def code_cell(text: str, printed: str | None = None, tags: Sequence[str] = ()) -> dict:
    said = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
    return {"cell_type": "code", "metadata": {"tags": list(tags)} if tags else {}, "execution_count": None,
            "source": text.rstrip("\n"), "outputs": said}


def of_page(path: Path, printed: Iterable[str | None], out: Path = OUT) -> dict:
    """The notebook of a lesson's page. printed: what its Python blocks print, in order."""
    cells: list[dict] = []
    links = linked(pages.other_tongues(path), path, out)
    words = f"{links}\n\n" if links else ""       # a paragraph, because the title needs a line of its own
    for part in pages.parts(path, printed):
        if part.kind == "code":
            cells += [text_cell(words)] * bool(words.strip())
            words = ""
            cells.append(code_cell(part.text, part.printed, [tag for w, tag in TAGS.items()
                                                             if f"{w}=" in part.words]))
        else:
            words += f"```text\n{part.text}```" if part.kind == "output" else linked(part.text, path, out)
    cells += [text_cell(words)] * bool(words.strip())
    return notebook(cells, pages.language(path).removeprefix(".") or "en")


def linked(text: str, path: Path, out: Path = OUT) -> str:
    """Return a page with the links of its notebook: to other notebooks, and to files of the repository."""
    def right(match: re.Match) -> str:
        target = (path.parent / match[1]).resolve()
        if not target.exists():
            return match[0]
        there = place(target, out) if target in pages.LESSONS else target
        return f"]({quote(Path(os.path.relpath(there, place(path, out).parent)).as_posix())}{match[2]}"

    return LINK.sub(right, text)


def of_program(path: Path) -> dict:
    """The notebook of a program: its lines, but for the arguments, which come from no command line."""
    source = path.read_text(encoding="utf-8")
    first, *rest = ast.parse(source).body
    cells, lines = [
        text_cell(f"# {path.stem}\n\n{ast.literal_eval(first.value)}\n{HERE}")], source.splitlines()
    starts = [min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", ()))]) for n in rest]
    whole = (ast.FunctionDef, ast.ClassDef, ast.If)
    cuts = [s for s, n, before in zip(starts, rest, [None, *rest]) if before is None or isinstance(n, whole)
            or isinstance(before, whole)]
    for start, end in zip(cuts, [*(c - 1 for c in cuts[1:]), len(lines)]):
        text = "\n".join(lines[start - 1:end]).rstrip()
        cells.append(code_cell(text.replace(f"{ARGUMENTS})", f'{ARGUMENTS}["--quick"])')))
    return notebook(cells)


def write_all(out: Path, printed: dict[Path, list[str | None]]) -> list[Path]:
    """All notebooks, in a folder for each chapter. printed: of each English page, what its blocks print."""
    made = {place(p, out): of_page(p, printed[pages.original(p)], out) for p in pages.LESSONS}
    made |= {place(p, out): of_program(p) for p in PROGRAMS}
    for name in BESIDE:
        (out / GALLERY.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(GALLERY / f"{name}.py", out / GALLERY.name)
    return [write_text(path, json.dumps(book, ensure_ascii=False,
                                        indent=1) + "\n") for path, book in made.items()]


if __name__ == "__main__":
    count = len(write_all(OUT, outputs.all_outputs([*pages.ENGLISH, *pages.OWN], outputs.KEPT)))
    print(f"{count} notebooks are in {OUT.relative_to(ROOT)}: open them with Jupyter or an editor, on the "
          f"Python of .venv")
