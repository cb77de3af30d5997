"""SVG writer: boxes, text, lines, and arrows, without a plotting library.

The diagrams of the lessons, graphs, and routes are drawn with it. A diagram for readers has at most BOXES
boxes. No diagram has more than MOST boxes: it merges the rest, and shows how many things each box stands for.
"""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

from flowedu.errors.files import write_text

BOXES = 60
MOST = 300
INK, GREY = "#1f2933", "#616e7c"
# Light fills on which dark text is readable, and that color-blind readers can distinguish.
FILLS = ("#cfe8fc", "#fde4c3", "#d5efd2", "#f6d4df", "#e4dcf5", "#fbf3b9", "#d9e2ec", "#c6f0ea")


def element(tag: str, text: str | None = None, /, **attributes) -> str:
    """Return an escaped element. class_ and stroke_width become class and stroke-width; None is omitted."""
    attrs = "".join(f' {k.rstrip("_").replace("_", "-")}="{_value(v)}"' for k, v in attributes.items()
                    if v is not None)
    return f"<{tag}{attrs}/>" if text is None else f"<{tag}{attrs}>{escape(text)}</{tag}>"


def _value(v: str | float) -> str:
    return escape(v) if isinstance(v, str) else f"{round(v, 2):.10g}"


class Drawing:
    """SVG drawing. Coordinates are pixels from the top left corner.

    title: description for screen readers. id, style: element id, and CSS rules that refer to it. With a
    style, the background is transparent, else white.
    """

    def __init__(self, width: float, height: float, title: str = "", id: str | None = None, style: str = ""):
        self.width, self.height, self.title = round(width), round(height), title
        self.id, self.style = id, style
        self.parts: list[str] = []
        self.patterns: list[str] = []

    # ---- parts
    def add(self, tag: str, text: str | None = None, /, **attributes) -> None:
        """Append an element (see `element`)."""
        self.parts.append(element(tag, text, **attributes))

    @contextmanager
    def group(self, tip: str = "", href: str = "") -> Iterator[None]:
        """Group the elements drawn inside the context. tip: tooltip. href: link target."""
        self.parts.append(f'<a href="{escape(href)}">' if href else "<g>")
        if tip:
            self.add("title", tip)
        yield
        self.parts.append("</a>" if href else "</g>")

    def box(self, x: float, y: float, w: float, h: float, text: str = "", fill: str = "white", size: int = 14,
            line: str = INK, rx: float = 3) -> None:
        """Draw a rectangle with centered text; "\\n" starts a new line."""
        self.add("rect", x=x, y=y, width=w, height=h, rx=rx, fill=fill, stroke=line)
        lines = text.split("\n") if text else []
        for i, t in enumerate(lines):
            self.text(x + w / 2, y + h / 2 + size * (0.35 + 1.25 * (i - (len(lines) - 1) / 2)), t, size)

    def text(self, x: float, y: float, text: str, size: int = 14, anchor: str = "middle",
             color: str = INK) -> None:
        """Draw a line of text. (x, y): its "middle", "start", or "end" (`anchor`) on the baseline."""
        self.add("text", text, x=x, y=y, font_size=size, text_anchor=anchor, fill=color)

    def code(self, x: float, y: float, text: str, size: int = 12) -> None:
        """Draw a line of code in a monospace font, with all spaces. (x, y) is its start."""
        self.add("text", text.replace(" ", "\u00a0"), x=x, y=y, font_size=size, fill=INK,
                 font_family="DejaVu Sans Mono, Menlo, Consolas, monospace")

    def line(self, *points: tuple[float, float], color: str = GREY) -> None:
        """Draw a line through the points."""
        self.add("polyline", points=" ".join(f"{_value(x)},{_value(y)}" for x, y in points), fill="none",
                 stroke=color)

    def arrow(self, x1: float, y1: float, x2: float, y2: float, color: str = INK) -> None:
        """Draw a line with an arrowhead at (x2, y2)."""
        length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1e-9)
        u, v = (x2 - x1) / length * 8, (y2 - y1) / length * 8
        head = ((x2, y2), (x2 - u - v / 2, y2 - v + u / 2), (x2 - u + v / 2, y2 - v - u / 2))
        self.add("line", x1=x1, y1=y1, x2=x2 - u, y2=y2 - v, stroke=color)
        self.add("polygon", points=" ".join(f"{_value(x)},{_value(y)}" for x, y in head), fill=color)

    def path(self, *steps: tuple, **attributes) -> None:
        """Draw a path. steps: SVG path commands: ("M", (x, y)), ("C", (x1, y1), (x2, y2), (x, y)), ("Z",)."""
        self.add("path", d=" ".join(letter + " ".join(f"{_value(x)},{_value(y)}" for x, y in points)
                                    for letter, *points in steps), **attributes)

    def hatching(self, name: str, angle: float) -> None:
        """Define a pattern of thin lines, to be used as fill `url(#name)`."""
        inside = element("path", d="M0,3 H6", stroke=INK, stroke_width=1, opacity=0.45)
        self.patterns.append(f'<pattern id="{escape(name)}" width="6" height="6" '
                             f'patternUnits="userSpaceOnUse" '
                             f'patternTransform="rotate({_value(angle)})">{inside}</pattern>')

    # ---- output
    def svg(self) -> str:
        """Return the SVG text of the drawing."""
        w, h = self.width, self.height
        label = "" if not self.title else f' role="img" aria-label="{escape(self.title)}"'
        id_attr = "" if self.id is None else f' id="{escape(self.id)}"'
        head = [f'<svg xmlns="http://www.w3.org/2000/svg"{id_attr} width="{w}" height="{h}" viewBox="0 0 {w} '
                f'{h}"{label} font-family="DejaVu Sans, Arial, sans-serif">']
        if self.title:
            head.append(element("title", self.title))
        head.append(f"<style>{self.style}</style>" if self.style
                    else '<rect width="100%" height="100%" fill="white"/>')
        if self.patterns:
            head += ["<defs>", *self.patterns, "</defs>"]
        return "\n".join([*head, *self.parts, "</svg>", ""])

    def save(self, path: str | os.PathLike) -> Path:
        """Write the SVG file, and create its folder."""
        return write_text(path, self.svg())
