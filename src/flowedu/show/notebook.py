"""Notebook output of a cell's last line, and `flow.show`, which displays any object or writes a file.

A notebook calls `_repr_svg_` and `_repr_html_` of an object; if both are missing or return None, it shows the
text. Graphs (nn/graph/graph.py), routes (distributed/boxing.py), and timelines have diagrams; tensors, plans,
and jobs have tables, which are built here. Nothing is built before it is displayed.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.graph.plan import Plan
from flowedu.errors import ArgumentError

MOST = 12                     # most rows or columns of a tensor shown as a table
CELL = "text-align: right; padding: 1px 6px"
PAGE = '<!DOCTYPE html>\n<html><head><meta charset="utf-8"/></head>\n<body>\n{}\n</body></html>\n'


def html_table(rows: Sequence[Sequence[str]], head: Sequence[str] = (), under: str = "",
               left: int = 0) -> str:
    """Return an HTML table. head: column titles. under: text below it. left: header cells per row."""
    from flowedu.show.svg import element

    def put(cells: Iterable, tag: str, more: str = "") -> str:
        return "".join(element(tag, c, style=CELL + more) for c in cells)

    lines = [f"<thead><tr>{put(head, 'th')}</tr></thead>"] if head else []
    lines += [f"<tr>{put(row[:left], 'th')}{put(row[left:], 'td', '; white-space: pre')}</tr>"
              for row in rows]
    return "\n".join(["<table>", *lines, "</table>", *([element("pre", under)] if under else [])])


def tensor_html(t: Tensor) -> str | None:
    """Return a vector or matrix of at most MOST rows and columns as a table, or None for other tensors."""
    small = 1 <= t.ndim <= 2 and t.numel() and max(t.shape) <= MOST
    if not small or getattr(t, "is_lazy", False) or t.global_layout is not None:
        return None
    from flowedu.tensor.printing import Formatter, grad_text, host_array

    a = host_array(t)
    form, names = Formatter(a), [str(i) for i in range(a.shape[-1])]
    rows = [[form(v).strip() for v in row] for row in (a if a.ndim == 2 else a[None]).tolist()]
    rows = [[str(i), *row] for i, row in enumerate(rows)] if a.ndim == 2 else rows
    where = [f"device='{t.device}'"] if t.is_cuda else []
    under = [f"size={tuple(t.shape)}", f"dtype={t.dtype!r}", *where, *grad_text(t)]
    return html_table(rows, ["", *names] if a.ndim == 2 else names, ", ".join(under), a.ndim - 1)


def plan_html(plan: Plan, arguments: Mapping[str, str] = {}) -> str:
    """Return the table of show/plan.py as HTML. arguments: {name of an input: the user's name for it}."""
    from flowedu.show.plan import HEAD, LEGEND, memory_line, passes, rows, shorten

    cells = [[str(r.number) if r.number >= 0 else "", r.op, r.result, r.shape, shorten(r.reads), r.home,
              f"{r.nbytes:,}", f"{r.live:,}" if r.number >= 0 else ""] for r in rows(plan, arguments)]
    return html_table(cells, HEAD, "\n".join([*passes(plan), "", LEGEND, memory_line(plan)]), 1)


attach(Tensor, {"_repr_html_": tensor_html})
attach(Plan, {"_repr_html_": plan_html})


def show(thing: Any, path: str | os.PathLike | None = None) -> Path | None:
    """Show an object as a diagram or a table in a notebook, and as text elsewhere.

    Args:
        thing: a graph (an nn.Graph after its first call), plan, job, route, timeline, or tensor.
        path: file to write instead: .svg (diagram) or .html (page with the diagram or table). Its folder is
            created.

    Returns: the path of the file, if one was written.

    Raises:
        ArgumentError: `thing` has no diagram or table for this kind of file.
    """
    text = _text(thing)                                           # compiles a job that was never called
    if path is not None:
        return _write(thing, Path(path))
    if _in_notebook():
        from IPython.display import display
        display(thing)
    else:
        print(text)
    return None


def _text(thing: Any) -> str:
    if isinstance(thing, Plan):
        from flowedu.show.plan import describe
        return describe(thing)
    for name in ("show", "describe"):                              # of jobs and of routes
        method = getattr(type(thing), name, None)
        if callable(method):
            return method(thing)
    return str(thing)


def _representation(thing: Any, name: str) -> str | None:
    """Return the representation that a notebook would show, or None if there is no method `name`."""
    return method(thing) if (method := getattr(type(thing), name, None)) else None


def _write(thing: Any, path: Path) -> Path:
    from flowedu.errors.files import write_text

    if path.suffix not in (".svg", ".html"):
        raise ArgumentError("show: path", expected="a file that ends in .svg or .html", got=str(path))
    content = _representation(thing, "_repr_svg_")
    if not content and path.suffix == ".html":
        content = _representation(thing, "_repr_html_")
    if not content:
        table = " (it is a table: .html)" if _representation(thing, "_repr_html_") else ""
        kind = type(thing).__name__
        raise ArgumentError(f"show: there is no such image of this {kind}", got=f"{path}{table}",
                            expected="an nn.Graph that was called, a route, a timeline; for .html also a "
                            "plan, a job or a "
                            f"tensor of at most {MOST} rows and columns",
                            fix="flow.show(thing) prints it as text")
    return write_text(path, content if path.suffix == ".svg" else PAGE.format(content))


def _in_notebook() -> bool:
    """Return True if a Jupyter kernel runs this code. IPython in a terminal cannot show diagrams."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None
