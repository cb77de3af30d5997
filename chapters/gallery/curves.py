"""A picture of numbers over steps, for the programs beside it."""
from collections.abc import Sequence
from pathlib import Path

from flowedu.show.svg import Drawing

WIDTH, HEIGHT, LEFT, ROOM = 640, 320, 70, 40
COLORS = ("#1f5fa8", "#c0502a", "#3c7d3c")


def curves(file: Path, title: str, **lines: Sequence[float]) -> Path:
    """Draw lines, each over steps from 1 on, and write the SVG. Returns its path."""
    every = [v for line in lines.values() for v in line]
    low, high = min(every), max(every)
    high += (high == low) * 1.0
    picture = Drawing(WIDTH, HEIGHT, title)
    picture.text(WIDTH / 2, 22, title)
    for share in (0, 0.5, 1):
        y = HEIGHT - ROOM - share * (HEIGHT - 2 * ROOM)
        picture.line((LEFT, y), (WIDTH - 20, y))
        picture.text(LEFT - 8, y + 4, f"{low + share * (high - low):.3g}", 12, "end")
    for k, (name, line) in enumerate(lines.items()):
        step = (WIDTH - LEFT - 20) / max(1, len(line) - 1)
        picture.line(*[(LEFT + i * step, HEIGHT - ROOM - (v - low) / (high - low) * (HEIGHT - 2 * ROOM))
                       for i, v in enumerate(line)], color=COLORS[k])
        picture.text(LEFT + 90 + 190 * k, HEIGHT - 12, f"{name}: {line[-1]:.3g} at the end", 12, color=COLORS[k])
    return picture.save(file)
