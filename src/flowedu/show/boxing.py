"""Diagram of a route (SVG, no other program needed): a row per device, a column per layout on the route.

Every device shows the outline of the logical value and, inside it, its own data block by block; a block has
the same letter and colour everywhere. Addends of a partial sum are hatched, each addend in its own direction;
zeros are empty. Between two columns arrows show the sender, the receiver, and the bytes of each message.
Texts and lines suit a light and a dark page.
"""
from __future__ import annotations

import math
import os
import zlib
from itertools import pairwise, product

from flowedu.core.sbp.boxing.geometry import transfer
from flowedu.core.sbp.sbp import Box, Layout, boxes, pretty, split_axis
from flowedu.errors.files import write_text
from flowedu.show.svg import Drawing

COLORS = ("#8ecae6", "#ffd166", "#95d5b2", "#f4a7b9", "#cdb4f6", "#f9b384", "#a8dadc", "#d9ed92", "#e0b1cb", "#bde0fe")
LEFT, TOP, WIDTH, HEIGHT, ROW, GAP = 92, 84, 112, 72, 104, 190
STYLE = """#{id} text {{ font-family: system-ui, sans-serif; font-size: 11px; fill: #1f2328; }}
#{id} .head {{ font-size: 13px; font-weight: 600; }}
#{id} .soft {{ fill: #59636e; }}
#{id} .block {{ stroke: #ffffff; stroke-width: 1; }}
#{id} text.in {{ fill: #1f2328; }}
#{id} .outline {{ fill: none; stroke: #59636e; stroke-dasharray: 3 3; }}
#{id} .arrow {{ fill: none; stroke: #59636e; }}
#{id} .stay {{ fill: none; stroke: #afb8c1; stroke-dasharray: 1 4; }}
#{id} .tip {{ fill: #59636e; }}
#{id} .bytes {{ paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }}
@media (prefers-color-scheme: dark) {{
#{id} text {{ fill: #e6edf3; }}
#{id} .soft {{ fill: #9198a1; }}
#{id} .outline, #{id} .arrow {{ stroke: #9198a1; }}
#{id} .tip {{ fill: #9198a1; }}
#{id} .block {{ stroke: #0d1117; }}
#{id} .bytes {{ stroke: #0d1117; }}
}}"""


class _Picture:
    """One picture while it is made."""

    def __init__(self, route):
        self.route = route
        self.shape = tuple(route.spec.shape)
        self.stages = [route.src, *(h.src for h in route.hops[1:]), *([route.dst] if route.hops else [])]
        self.devices = sorted({d for at in self.stages for d in at.devices})
        self.id = f"boxing-{zlib.crc32(route.describe().encode()):08x}"
        self.axes = self._axes()
        title = route.describe().splitlines()[0]
        shown = "" if len(self.axes) == len(self.shape) else f" (axes {self.axes[0]} and {self.axes[1]} of it)"
        self.said = f"shape {self.shape}{shown}: {title}"
        width = max(self.x(len(self.stages) - 1) + WIDTH + 24, 32 + 6.4 * len(self.said))
        self.drawing = Drawing(width, TOP + len(self.devices) * ROW + 10, title, self.id, STYLE.format(id=self.id))
        self.cuts = [sorted({edge for at in self.stages for box in boxes(at.sbp, at.hierarchy, self.shape)
                             for edge in box[d]}) for d in self.axes]

    def _axes(self) -> list[int]:
        """The two axes that are shown: split ones first."""
        split = {split_axis(s) for at in self.stages for s in at.sbp} - {None}
        order = sorted(split) + [d for d in range(len(self.shape)) if d not in split]
        return sorted(order[:2])

    # ---- one device
    def x(self, stage: int) -> float:
        return LEFT + stage * (WIDTH + GAP)

    def y(self, device: int) -> float:
        return TOP + self.devices.index(device) * ROW

    def _span(self, d: int, edge: tuple[int, int]) -> tuple[float, float]:
        """Where [start, stop) along the d-th shown axis is, of 1."""
        n = self.shape[self.axes[d]] or 1
        return edge[0] / n, (edge[1] - edge[0]) / n

    def _place(self, stage: int, device: int, part: list[tuple[int, int]]) -> tuple[float, float, float, float]:
        """x, y, width, height of a part of the value: rows downwards, columns to the right; a vector lies."""
        (top, tall), (left, wide) = (0, 1), (0, 1)
        if len(part) == 2:
            (top, tall), (left, wide) = self._span(0, part[0]), self._span(1, part[1])
        elif len(part) == 1:
            left, wide = self._span(0, part[0])
        height = HEIGHT if len(part) == 2 else HEIGHT / 3
        return (self.x(stage) + left * WIDTH, self.y(device) + (HEIGHT - height) / 2 + top * height, wide * WIDTH,
                tall * height)

    def device(self, stage: int, at: Layout, i: int, full: list[Box], zeros: list[Box]) -> None:
        """What a device has: blocks, hatched where they are addends; zeros are empty. Split axes that are not shown are
        written below."""
        device, box = at.devices[i], at.box(self.shape, i)
        rect = lambda part, **style: self.drawing.add(
            "rect", **dict(zip(("x", "y", "width", "height"), self._place(stage, device, part))), **style)
        whole = [(0, self.shape[d]) for d in self.axes]
        said = ", ".join(f"{a}:{b}" for a, b in box) or "the number"
        addend = f", addend {at.slot(i)} of {at.slots} ({at.reducer})" if at.partial else ""
        with self.drawing.group(f"device {device}: [{said}]{addend}"):
            for number, part in enumerate(product(*(list(pairwise(cut)) for cut in self.cuts))):
                if not any(self._covers(f, part) for f in full):
                    continue
                rect(part, class_="block", fill=COLORS[number % len(COLORS)])
                if at.partial:
                    rect(part, fill=f"url(#{self.id}-{at.slot(i) % 4})")
                x, y, w, h = self._place(stage, device, part)
                if w > 9 and h > 11:
                    self.say("in", x + w / 2, y + h / 2 + 4, _letter(number))
            for empty in zeros:
                part = [empty[d] for d in self.axes]
                if any(self._covers(f, part) for f in full):
                    continue
                x, y, w, h = self._place(stage, device, part)
                zero = {"sum": "0", "max": "least", "min": "most"}[at.reducer]
                if w > 7 * len(zero):
                    self.say("soft", x + w / 2, y + h / 2 + 4, zero)
            rect(whole, class_="outline")
            hidden = [f"axis {d}: {a}:{b}" for d, (a, b) in enumerate(box)
                      if d not in self.axes and (a, b) != (0, self.shape[d])]
            if hidden:
                self.say("soft", self.x(stage) + WIDTH / 2, self.y(device) + HEIGHT + 14, ", ".join(hidden))

    def _covers(self, box: Box, part) -> bool:
        """Whether a block of the shown axes is in a box."""
        return all(box[d][0] <= a and b <= box[d][1] for d, (a, b) in zip(self.axes, part))

    def stage(self, number: int, at: Layout) -> None:
        """A column."""
        x = self.x(number)
        grid = f" ({'x'.join(map(str, at.hierarchy))})" if len(at.hierarchy) > 1 else ""
        self.say("head", x + WIDTH / 2, TOP - 14, pretty(at.sbp) + grid)
        hop = self.route.hops[number - 1] if number else None
        made = transfer(hop.src, hop.dst, self.shape) if hop is not None and hop.primitive.kind == "fill" else None
        for i in range(at.k):
            full = [at.box(self.shape, i)] if made is None else [c.box for c in made[i].cells if c.pieces]
            self.device(number, at, i, full, [] if made is None else [c.box for c in made[i].cells if not c.pieces])

    # ---- between two columns
    def hop(self, number: int, hop) -> None:
        """Arrows with bytes, and dotted lines where a device goes on with what it has."""
        a, b = self.x(number) + WIDTH + 6, self.x(number + 1) - 6
        middle = lambda d: self.y(d) + HEIGHT / 2
        self.say("head", (a + b) / 2, TOP - 30, hop.name)
        self.say("soft", (a + b) / 2, TOP - 14, _bytes(hop.bytes))
        for d in sorted(set(hop.src.devices) & set(hop.dst.devices)):
            self.drawing.path(("M", (a, middle(d))), ("L", (b, middle(d))), class_="stay")
        messages = hop.messages()
        most = max((n for _, _, n in messages), default=1)
        for i, (p, q, n) in enumerate(messages):
            y, z = middle(p) + _spread(i, len(messages)), middle(q) + _spread(i, len(messages))
            length = math.hypot(b - a, z - y)
            ux, uy = (b - a) / length, (z - y) / length
            back = lambda along, aside: (b - along * ux + aside * uy, z - along * uy - aside * ux)     # noqa: B023
            with self.drawing.group(f"device {p} sends {_bytes(n)} to device {q}"):
                self.drawing.path(("M", (a, y)), ("L", back(6, 0)), class_="arrow", stroke_width=0.8 + 1.7 * n / most)
                self.drawing.path(("M", (b, z)), ("L", back(8, 3.5)), ("L", back(8, -3.5)), ("Z",), class_="tip")
        said: list[tuple[float, float, int]] = []
        for i, (p, q, n) in enumerate(messages):               # labels last: no line runs over them
            y, z = middle(p) + _spread(i, len(messages)), middle(q) + _spread(i, len(messages))
            usual, text = 0.16 + 0.16 * (sum(1 for m in messages[:i] if m[0] == p) % 4), _bytes(n, True)
            for t in (usual, *(k / 25 for k in range(3, 23))):
                at = (a + t * (b - a), y + t * (z - y) + 4, len(text))
                if all(abs(at[0] - u) > 3.8 * (at[2] + k) or abs(at[1] - v) > 9 for u, v, k in said):
                    said.append(at)
                    self.say("bytes", *at[:2], text)
                    break                                      # where there is no room for it, the arrow's tip says it

    def say(self, kind: str, x: float, y: float, text: str, anchor: str | None = "middle") -> None:
        """A text whose middle is at x; the style of `kind` is in STYLE."""
        self.drawing.add("text", text, class_=kind or None, x=x, y=y, text_anchor=anchor)

    def text(self) -> str:
        """All of it."""
        for i, angle in enumerate((45, -45, 0, 90)):
            self.drawing.hatching(f"{self.id}-{i}", angle)
        self.say("soft", 16, 20, self.said, None)
        for d in self.devices:
            self.say("", 16, self.y(d) + HEIGHT / 2 + 4, f"device {d}", None)
            at = next((at for at in self.stages if d in at.devices and len(at.hierarchy) > 1), None)
            if at is not None:
                self.say("soft", 16, self.y(d) + HEIGHT / 2 + 18, f"at {at.coords(at.devices.index(d))}", None)
        for number, at in enumerate(self.stages):
            self.stage(number, at)
        for number, hop in enumerate(self.route.hops):
            self.hop(number, hop)
        return self.drawing.svg()


def _letter(n: int) -> str:
    return chr(ord("a") + n) if n < 26 else str(n)


def _spread(i: int, k: int) -> float:
    """A little up or down, so that arrows between the same rows do not lie on each other."""
    return 0.0 if k < 2 else (i / (k - 1) - 0.5) * 26


def _bytes(n: int, short: bool = False) -> str:
    for unit, size in (("MB", 1 << 20), ("KB", 1 << 10)):
        if n >= 10 * size:
            return f"{n / size:.0f} {unit}"
    return f"{n}" if short else f"{n} bytes" if n != 1 else "1 byte"


def draw(route, path: str | os.PathLike | None = None) -> str:
    """The picture of `route` as SVG text, which is also written to `path`, when one is given."""
    text = _Picture(route).text()
    if path is not None:
        write_text(path, text)
    return text
