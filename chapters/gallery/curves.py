"""Line charts for the programs of this folder."""
from collections.abc import Sequence
from pathlib import Path

from flowedu.show.svg import Drawing

WIDTH, HEIGHT = 640, 320
LEFT, MARGIN = 70, 40
COLORS = ("#1f5fa8", "#c0502a", "#3c7d3c")


def draw_curves(file: Path, title: str, **lines: Sequence[float]) -> Path:
    """Draw each line over its steps, write an SVG file, and return its path."""
    values = [v for line in lines.values() for v in line]
    low, high = min(values), max(values)
    high += (high == low) * 1.0
    drawing = Drawing(WIDTH, HEIGHT, title)
    drawing.text(WIDTH / 2, 22, title)
    for share in (0, 0.5, 1):
        y = HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN)
        drawing.line((LEFT, y), (WIDTH - 20, y))
        drawing.text(LEFT - 8, y + 4, f"{low + share * (high - low):.3g}", 12, "end")
    for k, (name, line) in enumerate(lines.items()):
        step = (WIDTH - LEFT - 20) / max(1, len(line) - 1)
        drawing.line(*[(LEFT + i * step, HEIGHT - MARGIN - (v - low) / (high - low) * (HEIGHT - 2 * MARGIN))
                       for i, v in enumerate(line)], color=COLORS[k])
        drawing.text(LEFT + 90 + 190 * k, HEIGHT - 12, f"{name}: {line[-1]:.3g} at the end", 12,
                     color=COLORS[k])
    return drawing.save(file)
