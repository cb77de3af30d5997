"""A small drawing: boxes, text and arrows in an SVG file, so that the lessons' diagrams need no plotting library."""
from __future__ import annotations

from html import escape
from pathlib import Path

INK, GREY = "#1f2933", "#616e7c"
# Light fills that dark text is readable on, and that differ for colour-blind readers.
FILLS = ("#cfe8fc", "#fde4c3", "#d5efd2", "#f6d4df", "#e4dcf5", "#fbf3b9", "#d9e2ec", "#c6f0ea")


class Drawing:
    """Coordinates are pixels from the top left corner."""

    def __init__(self, width: int, height: int):
        self.width, self.height, self.parts = width, height, []

    def box(self, x: float, y: float, w: float, h: float, text: str = "", fill: str = "white", size: int = 14,
            line: str = INK) -> None:
        """A rectangle with text in its middle; "\\n" starts a new line."""
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="3" fill="{fill}" '
                          f'stroke="{line}"/>')
        lines = text.split("\n") if text else []
        for i, t in enumerate(lines):
            self.text(x + w / 2, y + h / 2 + size * (0.35 + 1.25 * (i - (len(lines) - 1) / 2)), t, size)

    def text(self, x: float, y: float, text: str, size: int = 14, anchor: str = "middle", color: str = INK) -> None:
        """One line of text; (x, y) is its middle, "start" or "end" on the base line."""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{color}">'
                          f'{escape(text)}</text>')

    def line(self, *points: tuple[float, float], color: str = GREY) -> None:
        """A line through the points."""
        through = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(f'<polyline points="{through}" fill="none" stroke="{color}"/>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float, color: str = INK) -> None:
        """A line with a head at (x2, y2)."""
        length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1e-9)
        u, v = (x2 - x1) / length * 8, (y2 - y1) / length * 8
        head = f"{x2:g},{y2:g} {x2 - u - v / 2:g},{y2 - v + u / 2:g} {x2 - u + v / 2:g},{y2 - v - u / 2:g}"
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2 - u:g}" y2="{y2 - v:g}" stroke="{color}"/>'
                          f'<polygon points="{head}" fill="{color}"/>')

    def save(self, path: Path) -> Path:
        """Write the file, making its folder."""
        path.parent.mkdir(parents=True, exist_ok=True)
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        font = 'font-family="DejaVu Sans, Arial, sans-serif"'
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>\n'
                        f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(self.parts) + "\n</svg>\n",
                        encoding="utf-8")
        return path
