"""Diagram of a plan's memory: one rectangle per buffer.

A rectangle extends from the step that writes the buffer to the last step that reads it (x), at its offset in
the arena (y). Rectangles never overlap; the planner guarantees this.
"""
from __future__ import annotations

import os
from pathlib import Path

from flowedu.core.graph.memory import Buffer
from flowedu.core.graph.plan import Plan
from flowedu.errors import UnsupportedError
from flowedu.errors.extras import install
from flowedu.show.plan import Names, live_bytes, parts, saved_for_backward, split

COLORS = {"forward, saved for backward": "#6fa8d6", "forward": "#cfe3f2", "backward": "#eda94f",
          "scratch": "#cfcfcf"}
LABELLED = 0.02         # smallest share of the arena at which a buffer is labeled


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
    used = set()
    for b in plan.buffers:
        if not b.in_arena:
            continue
        kind = "forward" if where[b.first] == "forward" else "backward"
        if b.kind == "scratch":
            kind = "scratch"
        elif b in saved:
            kind = "forward, saved for backward"
        last = min(b.last, len(plan.steps) - 1)
        top.broken_barh([(b.first, last + 1 - b.first)], (b.offset / 1e6, b.nbytes / 1e6),
                        facecolor=COLORS[kind],
                        edgecolor="white", linewidth=0.6, label="" if kind in used else kind)
        used.add(kind)
        if b.nbytes >= LABELLED * plan.arena and b.kind == "temp":
            room = max(4, int((last + 1 - b.first) * 130 / len(plan.steps)))  # letters that fit
            text = names.get(b, b.name)
            top.text((b.first + last + 1) / 2, (b.offset + b.nbytes / 2) / 1e6, text if len(text) <= room else
                     text[:room - 1] + "…", ha="center", va="center", fontsize=7)
    top.axhline(plan.arena / 1e6, color="black", linewidth=0.8)
    top.set(ylabel="place in the arena (MB)", ylim=(0, plan.arena / 1e6 * 1.04 or 1), title=(
        f"{plan.graph.name}: {plan.sum_bytes / 1e6:.1f} MB of buffers in an arena of {plan.arena / 1e6:.1f} "
        f"MB"))
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


def _names(plan: Plan, arguments: dict[str, str]) -> dict:
    """Return {buffer: name of the first value stored in it}. Later values reuse it in place."""
    name = Names(plan, arguments)
    result: dict[Buffer, str] = {}
    for step in plan.steps:
        for y, p in zip(step.node.outputs if step.node is not None else (), split(step)[1]):
            result.setdefault(p.buffer, name(y))
    return result
