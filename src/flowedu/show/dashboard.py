"""A page of charts from training logs (utils/tensorboard.py): one chart per tag, one line per run."""
from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from flowedu.errors.files import write_text
from flowedu.show.notebook import PAGE
from flowedu.show.svg import Drawing, element

COLORS = ("#1f5fa8", "#c0502a", "#3c7d3c", "#7a4fa3", "#8c6d1f", "#a33b6f", "#3b8f8f", "#555555")
WIDTH, HEIGHT, LEFT = 560, 260, 80
TOP, LEGEND = 34, 16

Line = Mapping[int, float]


def chart(title: str, lines: Mapping[str, Line]) -> Drawing:
    """Draw lines over steps: {name: {step: value}}. A value that is not finite leaves a gap in its line."""
    d = Drawing(WIDTH, HEIGHT + LEGEND * len(lines), title)
    d.text(WIDTH / 2, 20, title)
    finite = {name: {s: v for s, v in line.items() if math.isfinite(v)} for name, line in lines.items()}
    steps, values = ([p for line in finite.values() for p in some(line)] for some in (dict.keys, dict.values))
    first, low = min(steps, default=0), min(values, default=0.0)
    wide, tall = max(steps, default=0) - first or 1, max(values, default=0.0) - low or 1.0
    floor, right = HEIGHT - 30, WIDTH - 20

    def x(step: float) -> float:
        return LEFT + (right - LEFT) * (step - first) / wide

    def y(value: float) -> float:
        return floor - (floor - TOP) * (value - low) / tall

    for share in (0, 0.5, 1):
        d.line((LEFT, y(low + share * tall)), (right, y(low + share * tall)), color="#d9e2ec")
        d.text(LEFT - 8, y(low + share * tall) + 4, f"{low + share * tall:.4g}", 11, "end")
    d.text(LEFT, floor + 18, str(first), 11, "start")
    d.text(right, floor + 18, f"step {first + wide}", 11, "end")
    for i, (name, line) in enumerate(lines.items()):
        color = COLORS[i % len(COLORS)]
        for piece in _pieces(line):
            d.line(*[(x(s), y(v)) for s, v in piece], color=color)
            if len(piece) == 1:
                d.add("circle", cx=x(piece[0][0]), cy=y(piece[0][1]), r=2, fill=color)
        last = line[max(line)] if line else math.nan
        d.text(LEFT, HEIGHT + LEGEND * i + 6, f"{name}: {last:.4g} at the end", 12, "start", color)
    return d


def _pieces(line: Line) -> list[list[tuple[int, float]]]:
    """Sort the points by step, and split them at values that are not finite."""
    pieces: list[list[tuple[int, float]]] = [[]]
    for step in sorted(line):
        if math.isfinite(line[step]):
            pieces[-1].append((step, line[step]))
        else:
            pieces.append([])
    return [p for p in pieces if p]


def page(title: str, runs: Mapping[str, Mapping[str, Line]], path: Path) -> Path:
    """Write a page with the charts of all tags. runs: {run: {tag: {step: value}}}."""
    tags = dict.fromkeys(tag for by_tag in runs.values() for tag in by_tag)
    charts = [chart(tag, {run: by_tag[tag] for run, by_tag in runs.items() if tag in by_tag}).svg()
              for tag in tags]
    return write_text(path, PAGE.format("\n".join([element("h1", title), *charts])))
