"""Notebook output of a cell's last line, and `flow.show`, which displays any object or writes a file.

A notebook calls `_repr_svg_` and `_repr_html_` of an object; if both are missing or return None, it shows the
text. Graphs (nn/graph/graph.py), routes (distributed/boxing.py), and timelines have diagrams; tensors, plans,
and jobs have tables, which are built here. Nothing is built before it is displayed.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.graph.plan import Plan
from flowedu.errors import ArgumentError

MOST = 12                     # rows or columns of a tensor that is shown as a table
CELL = "text-align: right; padding: 1px 6px"
PAGE = '<!DOCTYPE html>\n<html><head><meta charset="utf-8"/></head>\n<body>\n{}\n</body></html>\n'


def html_table(rows: Sequence[Sequence[str]], head: Sequence[str] = (), under: str = "", left: int = 0) -> str:
    """A table in HTML. head: titles of the columns. under: lines below it. left: of how many columns to the left a row has
    titles."""
    from flowedu.show.svg import element

    put = lambda cells, tag, more="": "".join(element(tag, c, style=CELL + more) for c in cells)
    lines = [f"<thead><tr>{put(head, 'th')}</tr></thead>"] if head else []
    lines += [f"<tr>{put(row[:left], 'th')}{put(row[left:], 'td', '; white-space: pre')}</tr>" for row in rows]
    return "\n".join(["<table>", *lines, "</table>", *([element("pre", under)] if under else [])])


def tensor_html(t: Tensor) -> str | None:
    """A vector or a matrix of at most MOST rows and columns as a table; None for others, whose text says more."""
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
    """The table of show/plan.py. arguments: {name of an input: the user's name for it}."""
    from flowedu.show.plan import HEAD, LEGEND, memory_line, passes, rows, shorten

    cells = [[str(r.number) if r.number >= 0 else "", r.op, r.result, r.shape, shorten(r.reads), r.home, f"{r.nbytes:,}",
              f"{r.live:,}" if r.number >= 0 else ""] for r in rows(plan, arguments)]
    return html_table(cells, HEAD, "\n".join([*passes(plan), "", LEGEND, memory_line(plan)]), 1)


attach(Tensor, {"_repr_html_": tensor_html})
attach(Plan, {"_repr_html_": plan_html})


def show(thing: Any, path: str | os.PathLike | None = None) -> Path | None:
    """Show a graph, a plan, a job, a route, a timeline or a tensor: in a notebook as a picture or a table, elsewhere as
    text.

    Args:
        thing: what to show; an nn.Graph after its first call.
        path: a file to write instead, .svg (a picture) or .html (a page with the picture or the table); its folder is made.

    Returns: the path of the file, if one was written.

    Errors: ArgumentError for what has no picture of that kind.
    """
    words = _text(thing)                                           # a job that was never called gets its plan so
    if path is not None:
        return _written(thing, Path(path))
    if _in_notebook():
        from IPython.display import display
        display(thing)
    else:
        print(words)
    return None


def _text(thing: Any) -> str:
    if isinstance(thing, Plan):
        from flowedu.show.plan import describe
        return describe(thing)
    for name in ("show", "describe"):                              # of a job, of a route
        if callable(method := getattr(type(thing), name, None)):
            return method(thing)
    return str(thing)


def _asked(thing: Any, name: str) -> str | None:
    """What a notebook would get."""
    return method(thing) if (method := getattr(type(thing), name, None)) else None


def _written(thing: Any, path: Path) -> Path:
    from flowedu.errors.files import write_text

    if path.suffix not in (".svg", ".html"):
        raise ArgumentError("show: path", expected="a file that ends in .svg or .html", got=str(path))
    found = _asked(thing, "_repr_svg_") or (_asked(thing, "_repr_html_") if path.suffix == ".html" else None)
    if not found:
        table = " (it is a table: .html)" if _asked(thing, "_repr_html_") else ""
        kind = type(thing).__name__
        raise ArgumentError(f"show: there is no such image of this {kind}", got=f"{path}{table}",
                            expected="an nn.Graph that was called, a route, a timeline; for .html also a plan, a job or a "
                            f"tensor of at most {MOST} rows and columns", fix="flow.show(thing) prints it as text")
    return write_text(path, found if path.suffix == ".svg" else PAGE.format(found))


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this. (IPython in a terminal shows no pictures.)"""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None
