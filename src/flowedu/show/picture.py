"""Diagram of a plan's memory: one rectangle per buffer.

A rectangle extends from the step that writes the buffer to the last step that reads it (x), at its offset in
the arena (y). Rectangles never overlap; the planner guarantees this. With more than MOST buffers, a rectangle
is a part of the arena during some steps, with the number of buffers that begin in it.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flowedu.core.graph.memory import Buffer
from flowedu.core.graph.plan import Plan
from flowedu.errors import UnsupportedError
from flowedu.errors.extras import install
from flowedu.show.plan import Names, cut, live_bytes, parts, saved_for_backward, split
from flowedu.show.svg import MOST

COLORS = {"forward, saved for backward": "#6fa8d6", "forward": "#cfe3f2", "backward": "#eda94f",
          "scratch": "#cfcfcf"}
COLUMNS, ROWS = 25, 12  # cells of a diagram with more than MOST buffers
LABELLED = 0.02         # smallest share of the arena at which a buffer is labeled


class Rectangle(NamedTuple):
    """A buffer: its kind (a key of COLORS), its steps from start to stop, and its bytes from an offset."""

    kind: str
    start: int
    stop: int
    offset: int
    nbytes: int


class Cell(NamedTuple):
    """A part of the arena during some steps.

    Attributes: kind, of the most bytes in it; steps and bytes, its ranges; buffers, the number that begin in
    it; share, the part that is in use.
    """

    kind: str
    steps: tuple[float, float]
    bytes: tuple[float, float]
    buffers: int
    share: float


def draw_memory(plan: Plan, path: str | os.PathLike, arguments: dict[str, str] | None = None) -> Path:
    """Draw the arena over the steps to `path` (PNG or SVG). Needs matplotlib.

    Args:
        arguments: {name of an input: the user's name for it}, as for show.describe.
    """
    try:
        from matplotlib.figure import Figure  # unlike pyplot, without a window or global state
    except ImportError as e:
        raise UnsupportedError("an image of a plan needs matplotlib", expected="the package matplotlib",
                               got=str(e), fix=install("plot")) from None

    where, live = parts(plan), live_bytes(plan)
    saved, names = saved_for_backward(plan), _names(plan, arguments or {})
    figure = Figure(figsize=(12, 6.5), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    buffers = [b for b in plan.buffers if b.in_arena]
    rectangles = [_rectangle(b, plan, where, saved) for b in buffers]
    note = ""
    if len(buffers) > MOST:
        note = "; a number counts the buffers that begin in a cell"
        used = _draw_cells(top, gather_cells(rectangles, len(plan.steps), plan.arena))
    else:
        used = _draw_buffers(top, rectangles)
        for b, r in zip(buffers, rectangles):
            if b.nbytes >= LABELLED * plan.arena and b.kind == "temp":
                room = max(4, int((r.stop - r.start) * 130 / len(plan.steps)))  # letters that fit
                top.text((r.start + r.stop) / 2, (b.offset + b.nbytes / 2) / 1e6,
                         cut(names.get(b, b.name), room), ha="center", va="center", fontsize=7)
    top.axhline(plan.arena / 1e6, color="black", linewidth=0.8)
    top.set(ylabel="place in the arena (MB)", ylim=(0, plan.arena / 1e6 * 1.04 or 1), title=(
        f"{plan.graph.name}: {plan.sum_bytes / 1e6:.1f} MB of buffers in an arena of {plan.arena / 1e6:.1f} "
        f"MB{note}"))
    bottom.step(range(len(live) + 1), [n / 1e6 for n in [*live, *live[-1:]]], where="post", color="black",
                linewidth=1)
    bottom.fill_between(range(len(live) + 1), [n / 1e6 for n in [*live, *live[-1:]]], step="post",
                        color="#dddddd")
    bottom.set(ylabel="live (MB)", xlabel="step", ylim=(0, None), xlim=(0, max(len(plan.steps), 1)))
    for part in ("backward", "update"):
        if part in where:
            for axes in (top, bottom):
                axes.axvline(where.index(part), color="#b03a2e", linewidth=0.8, linestyle="--")
            late = where.index(part) > 0.9 * len(where)
            bottom.text(where.index(part), 0, f" {part} ", color="#b03a2e", fontsize=8, va="bottom",
                        ha="right" if late else "left")
    if used:
        figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


def _rectangle(b: Buffer, plan: Plan, where: list[str], saved: set[Buffer]) -> Rectangle:
    kind = "forward" if where[b.first] == "forward" else "backward"
    if b.kind == "scratch":
        kind = "scratch"
    elif b in saved:
        kind = "forward, saved for backward"
    return Rectangle(kind, b.first, min(b.last, len(plan.steps) - 1) + 1, b.offset, b.nbytes)


def _draw_buffers(axes, rectangles: Sequence[Rectangle]) -> set[str]:
    """Draw a rectangle per buffer, and return the kinds of buffers."""
    used: set[str] = set()
    for r in rectangles:
        axes.broken_barh([(r.start, r.stop - r.start)], (r.offset / 1e6, r.nbytes / 1e6),
                         facecolor=COLORS[r.kind], edgecolor="white", linewidth=0.6,
                         label="" if r.kind in used else r.kind)
        used.add(r.kind)
    return used


def _draw_cells(axes, cells: Sequence[Cell]) -> set[str]:
    """Draw the cells of a large plan with their counts, and return the kinds of buffers."""
    used: set[str] = set()
    for c in cells:
        start, stop = c.steps
        low, high = c.bytes
        axes.broken_barh([(start, stop - start)], (low / 1e6, (high - low) / 1e6), alpha=0.3 + 0.7 * c.share,
                         facecolor=COLORS[c.kind], edgecolor="white", linewidth=0.6,
                         label="" if c.kind in used else c.kind)
        axes.text((start + stop) / 2, (low + high) / 2e6, f"{c.buffers or ''}", ha="center", va="center",
                  fontsize=7)
        used.add(c.kind)
    return used


def gather_cells(rectangles: Sequence[Rectangle], steps: int, arena: int) -> list[Cell]:
    """Divide the arena over the steps into cells, and return the cells that buffers are in.

    A buffer is counted in the cell of its first step and its offset. A cell has the kind that occupies most
    of it.
    """
    columns = np.linspace(0, steps, COLUMNS + 1)
    rows = np.linspace(0, arena, ROWS + 1)
    start, stop, low = (np.array([getattr(r, name) for r in rectangles], float)
                        for name in ("start", "stop", "offset"))
    high = low + np.array([r.nbytes for r in rectangles], float)
    along, across = _overlaps(start, stop, columns), _overlaps(low, high, rows)
    kinds = list(dict.fromkeys(r.kind for r in rectangles))
    held = np.stack([along[mine].T @ across[mine] for mine in (
        np.array([r.kind == kind for r in rectangles]) for kind in kinds)])
    column = np.minimum(np.searchsorted(columns, start, "right") - 1, COLUMNS - 1)
    row = np.minimum(np.searchsorted(rows, low, "right") - 1, ROWS - 1)
    counts = np.zeros((COLUMNS, ROWS), int)
    np.add.at(counts, (column, row), 1)
    area = (columns[1] - columns[0]) * max(rows[1] - rows[0], 1)
    return [Cell(kinds[held[:, i, j].argmax()], (columns[i], columns[i + 1]), (rows[j], rows[j + 1]),
                 int(counts[i, j]), min(held[:, i, j].sum() / area, 1.0))
            for i, j in np.argwhere((held.sum(0) > 0) | (counts > 0))]


def _overlaps(start: np.ndarray, stop: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the length of the overlap of each interval with each interval between neighboring edges."""
    inner = np.minimum(stop[:, None], edges[None, 1:]) - np.maximum(start[:, None], edges[None, :-1])
    return np.maximum(inner, 0)


def _names(plan: Plan, arguments: dict[str, str]) -> dict:
    """Return {buffer: name of the first value stored in it}. Later values reuse it in place."""
    name = Names(plan, arguments)
    result: dict[Buffer, str] = {}
    for step in plan.steps:
        for y, p in zip(step.node.outputs if step.node is not None else (), split(step)[1]):
            result.setdefault(p.buffer, name(y))
    return result
