"""Drawing of a Cython source. The shade of a line shows how much of it calls Python."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flowedu.show.svg import GREY, Drawing
from flowedu.swap.build import Line

LINE, LETTER = 21, 7.3                       # pixels: a line's height, a letter's width


def shade(score: int) -> str:
    """Return the color of a line: white for plain C, else a yellow from Cython's scale."""
    return f"#ffff{round(255 / (1 + score / 10)):02x}"


def draw_lines(sources: Sequence[tuple[str, Sequence[Line]]], path: Path | str) -> Path:
    """Draw sources in columns, each under its title, and write the SVG file."""
    widths = [40 + LETTER * max(len(line.text) for line in lines) + 50 for _, lines in sources]
    rows = max(len(lines) for _, lines in sources)
    d, x = Drawing(round(sum(widths) + 30 * (len(sources) + 1)), 70 + LINE * rows), 30.0
    for width, (title, lines) in zip(widths, sources):
        d.text(x, 30, title, 16, "start")
        for i, line in enumerate(lines):
            y = 48 + LINE * i
            d.box(x, y, width, LINE, fill=shade(line.score), line="#e4e7eb")
            d.text(x + 26, y + 15, f"{line.number}", 11, "end", GREY)
            d.code(x + 36, y + 15, line.text.rstrip())
            if line.score:
                d.text(x + width - 8, y + 15, f"{line.score}", 11, "end", GREY)
        x += width + 30
    return d.save(Path(path))
