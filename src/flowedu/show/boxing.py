"""SVG diagram of a route: one row per device, one column per layout on the route.

Every device shows the outline of the logical value and, inside it, the blocks that it stores. A block has the
same letter and color everywhere. Addends of a partial sum are hatched, each in its own direction, and zeros
are empty. Arrows between two columns show the sender, the receiver, and the bytes of each message. The colors
of text and lines adapt to light and dark pages.

If there were more than MOST blocks or arrows, a row is a group of devices, a block is several blocks, and an
arrow is all messages between two groups, with their number.
"""
from __future__ import annotations

import functools
import math
import os
import zlib
from collections.abc import Sequence
from itertools import chain, pairwise, product

from flowedu.core.sbp.boxing.geometry import transfer
from flowedu.core.sbp.sbp import Box, Layout, boxes, pretty, split_axis
from flowedu.errors.files import write_text
from flowedu.show import device_groups
from flowedu.show.device_groups import make_rows, touched
from flowedu.show.svg import MOST, Drawing

COLORS = ("#8ecae6", "#ffd166", "#95d5b2", "#f4a7b9", "#cdb4f6", "#f9b384", "#a8dadc", "#d9ed92", "#e0b1cb",
          "#bde0fe")
ZEROS: dict[str | None, str] = {"sum": "0", "max": "least", "min": "most"}      # reducer -> label
LEFT, TOP, WIDTH = 92, 84, 112
HEIGHT, ROW, GAP = 72, 104, 190
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
    """Builder of the diagram of one route."""

    def __init__(self, route):
        self.route = route
        self.shape = tuple(route.spec.shape)
        self.stages = [route.src, *(h.src for h in route.hops[1:]), *([route.dst] if route.hops else [])]
        devices = sorted({d for at in self.stages for d in at.devices})
        self.id = f"boxing-{zlib.crc32(route.describe().encode()):08x}"
        self.axes = self._axes()
        title = route.describe().splitlines()[0]
        shown = ("" if len(self.axes) == len(self.shape) else f" (axes {self.axes[0]} and {self.axes[1]} "
                 f"of it)")
        self.caption = f"shape {self.shape}{shown}: {title}"
        self.contents = [self._contents(i, at) for i, at in enumerate(self.stages)]
        self._make_rows(devices)
        width = max(self.x(len(self.stages) - 1) + WIDTH + 24, 32 + 6.4 * len(self.caption))
        self.drawing = Drawing(width, TOP + len(self.rows) * ROW + 10, title, self.id,
                               STYLE.format(id=self.id))

    def _axes(self) -> list[int]:
        """Return the axes to show: at most two, preferring split axes."""
        axes = {split_axis(s) for at in self.stages for s in at.sbp}
        split = {d for d in axes if d is not None}
        order = sorted(split) + [d for d in range(len(self.shape)) if d not in split]
        return sorted(order[:2])

    def _contents(self, number: int, at: Layout) -> tuple[list[list[Box]], list[list[Box]]]:
        """Return the boxes that each device of a stage stores, and those that it fills with zeros."""
        hop = self.route.hops[number - 1] if number else None
        if hop is None or hop.primitive.kind != "fill":
            return [[box] for box in boxes(at.sbp, at.hierarchy, self.shape)], [[] for _ in at.devices]
        needs = transfer(hop.src, hop.dst, self.shape)
        return ([[c.box for c in need.cells if c.pieces] for need in needs],
                [[c.box for c in need.cells if not c.pieces] for need in needs])

    def _make_rows(self, devices: Sequence[int]) -> None:
        """Set the rows and the edges of the blocks: of each device, or of as many groups as fit."""
        edges = [sorted({edge for at in self.stages for box in boxes(at.sbp, at.hierarchy, self.shape)
                         for edge in box[d]}) for d in self.axes]
        self.rows, self.cuts = make_rows(devices, len(devices)), edges
        if (len(devices) <= device_groups.SINGLE and self._count_blocks() <= MOST
                and len(self.route.messages()) <= MOST):
            return
        busy = sum(bool(hop.bytes) for hop in self.route.hops)
        for n in device_groups.possible_groups(self.route):
            self.rows, self.cuts = make_rows(devices, n), device_groups.reduce_edges(edges, n)
            if n * n * busy <= MOST and self._count_blocks() <= MOST:
                return

    def _members(self, stage: int) -> dict[int, list[int]]:
        """Return {row: the indices of its devices in the layout of a stage}."""
        row_of = {d: i for i, row in enumerate(self.rows) for d in row.devices}
        members: dict[int, list[int]] = {}
        for i, d in enumerate(self.stages[stage].devices):
            members.setdefault(row_of[d], []).append(i)
        return members

    def _count_blocks(self) -> int:
        """Return the number of blocks in all rows and columns."""
        count = 0
        for stage, (full, _) in enumerate(self.contents):
            for members in self._members(stage).values():
                stored = list(chain.from_iterable(full[i] for i in members))
                count += len(touched(stored, self.axes, self.cuts))
        return count

    # ---- one device
    def x(self, stage: int) -> float:
        return LEFT + stage * (WIDTH + GAP)

    def y(self, row: int) -> float:
        return TOP + row * ROW

    def _span(self, d: int, edge: tuple[int, int]) -> tuple[float, float]:
        """Return the start and length of `edge` on the d-th shown axis, as fractions of the axis."""
        n = self.shape[self.axes[d]] or 1
        return edge[0] / n, (edge[1] - edge[0]) / n

    def _place(self, stage: int, row: int,
               part: Sequence[tuple[int, int]]) -> tuple[float, float, float, float]:
        """Return x, y, width, height of a block. Rows go down, columns go right; a vector is horizontal."""
        top, tall = 0.0, 1.0
        left, wide = 0.0, 1.0
        if len(part) == 2:
            top, tall = self._span(0, part[0])
            left, wide = self._span(1, part[1])
        elif len(part) == 1:
            left, wide = self._span(0, part[0])
        height = HEIGHT if len(part) == 2 else HEIGHT / 3
        return (self.x(stage) + left * WIDTH, self.y(row) + (HEIGHT - height) / 2 + top * height,
                wide * WIDTH, tall * height)

    def device(self, stage: int, row: int, members: Sequence[int]) -> None:
        """Draw the blocks of a device, or of a group of devices. Addends are hatched, and zeros are empty.

        Split axes that are not shown are written below.
        """
        at = self.stages[stage]
        full, zeros = ([box for i in members for box in table[i]] for table in self.contents[stage])
        single = len(self.rows[row].devices) == 1
        stored = set() if single else set(touched(full, self.axes, self.cuts))
        hatching = at.slot(members[0]) if single else row

        def draw_block(part: Sequence[tuple[int, int]], **style: str) -> None:
            place = dict(zip(("x", "y", "width", "height"), self._place(stage, row, part)))
            self.drawing.add("rect", **place, **style)

        whole = [(0, self.shape[d]) for d in self.axes]
        with self.drawing.group(self._tip(at, row, members)):
            for number, part in enumerate(product(*(list(pairwise(cut)) for cut in self.cuts))):
                if not (any(self._covers(f, part) for f in full) if single else number in stored):
                    continue
                draw_block(part, class_="block", fill=COLORS[number % len(COLORS)])
                if at.partial:
                    draw_block(part, fill=f"url(#{self.id}-{hatching % 4})")
                x, y, w, h = self._place(stage, row, part)
                if w > 9 and h > 11:
                    self.label("in", x + w / 2, y + h / 2 + 4, _letter(number))
            for empty in zeros if single else ():
                cell = [empty[d] for d in self.axes]
                if any(self._covers(f, cell) for f in full):
                    continue
                x, y, w, h = self._place(stage, row, cell)
                zero = ZEROS[at.reducer]
                if w > 7 * len(zero):
                    self.label("soft", x + w / 2, y + h / 2 + 4, zero)
            draw_block(whole, class_="outline")
            hidden = [f"axis {d}: {a}:{b}" for d, (a, b) in enumerate(at.box(self.shape, members[0]))
                      if d not in self.axes and (a, b) != (0, self.shape[d])]
            if hidden and single:
                self.label("soft", self.x(stage) + WIDTH / 2, self.y(row) + HEIGHT + 14, ", ".join(hidden))

    def _tip(self, at: Layout, row: int, members: Sequence[int]) -> str:
        """Return the tooltip of a device or a group: its part of the value and its addends."""
        ends = list(zip(*(at.box(self.shape, i) for i in members)))
        ranges = ", ".join(f"{min(a for a, _ in axis)}:{max(b for _, b in axis)}" for axis in ends)
        slots = sorted({at.slot(i) for i in members})
        addend = f"addend {slots[0]}" if len(slots) == 1 else f"{len(slots)} addends"
        count = "" if len(self.rows[row].devices) == 1 else f"{len(members)} devices, "
        return (f"{self.rows[row].name}: {count}[{ranges or 'the number'}]"
                + (f", {addend} of {at.slots} ({at.reducer})" if at.partial else ""))

    def _covers(self, box: Box, part) -> bool:
        """Return True if `part`, a block of the shown axes, is inside `box`."""
        return all(box[d][0] <= a and b <= box[d][1] for d, (a, b) in zip(self.axes, part))

    def stage(self, number: int, at: Layout) -> None:
        """Draw a column: the devices of one layout."""
        x = self.x(number)
        grid = f" ({'x'.join(map(str, at.hierarchy))})" if len(at.hierarchy) > 1 else ""
        self.label("head", x + WIDTH / 2, TOP - 14, pretty(at.sbp) + grid)
        for row, members in self._members(number).items():
            self.device(number, row, members)

    # ---- between two columns
    def hop(self, number: int, hop) -> None:
        """Draw an arrow with its bytes for each message, and dotted lines for devices in both columns."""
        a, b = self.x(number) + WIDTH + 6, self.x(number + 1) - 6

        def middle(row: int) -> float:
            return self.y(row) + HEIGHT / 2

        self.label("head", (a + b) / 2, TOP - 30, hop.name)
        self.label("soft", (a + b) / 2, TOP - 14, _bytes(hop.bytes))
        shared = set(hop.src.devices) & set(hop.dst.devices)
        for i, row in enumerate(self.rows):
            if not shared.isdisjoint(row.devices):
                self.drawing.path(("M", (a, middle(i))), ("L", (b, middle(i))), class_="stay")
        table = device_groups.count_messages(hop, self.rows)
        messages = [(p, q, n) for (p, q), (_, n) in table.items()]
        most = max((n for _, _, n in messages), default=1)
        for i, (p, q, n) in enumerate(messages):
            y, z = middle(p) + _spread(i, len(messages)), middle(q) + _spread(i, len(messages))
            back = functools.partial(_step_back, (a, y), (b, z))
            tip = device_groups.describe_messages(self.rows[p], self.rows[q], table[p, q][0], _bytes(n))
            with self.drawing.group(tip):
                self.drawing.path(("M", (a, y)), ("L", back(6, 0)), class_="arrow",
                                  stroke_width=0.8 + 1.7 * n / most)
                self.drawing.path(("M", (b, z)), ("L", back(8, 3.5)), ("L", back(8, -3.5)), ("Z",),
                                  class_="tip")
        labels: list[tuple[float, float, int]] = []
        # Labels come last, so that no line crosses them. Without a free position, a label is omitted.
        for i, (p, q, n) in enumerate(messages):
            y, z = middle(p) + _spread(i, len(messages)), middle(q) + _spread(i, len(messages))
            usual, text = 0.16 + 0.16 * (sum(1 for m in messages[:i] if m[0] == p) % 4), _bytes(n, True)
            for t in (usual, *(k / 25 for k in range(3, 23))):
                at = (a + t * (b - a), y + t * (z - y) + 4, len(text))
                if all(abs(at[0] - u) > 3.8 * (at[2] + k) or abs(at[1] - v) > 9 for u, v, k in labels):
                    labels.append(at)
                    self.label("bytes", *at[:2], text)
                    break

    def label(self, kind: str, x: float, y: float, text: str, anchor: str | None = "middle") -> None:
        """Write a text, centered at x by default. kind: its class in STYLE."""
        self.drawing.add("text", text, class_=kind or None, x=x, y=y, text_anchor=anchor)

    def text(self) -> str:
        """Draw the route and return the SVG text."""
        for i, angle in enumerate((45, -45, 0, 90)):
            self.drawing.hatching(f"{self.id}-{i}", angle)
        self.label("soft", 16, 20, self.caption, None)
        for i, row in enumerate(self.rows):
            single, d = len(row.devices) == 1, row.devices[0]
            self.label("", 16, self.y(i) + HEIGHT / 2 + 4, row.name if single else row.range, None)
            at = next((at for at in self.stages if d in at.devices and len(at.hierarchy) > 1), None)
            below = None if at is None else f"at {at.coords(at.devices.index(d))}"
            if not single:
                below = f"{len(row.devices)} devices"
            if below is not None:
                self.label("soft", 16, self.y(i) + HEIGHT / 2 + 18, below, None)
        for number, at in enumerate(self.stages):
            self.stage(number, at)
        for number, hop in enumerate(self.route.hops):
            self.hop(number, hop)
        return self.drawing.svg()


def _letter(n: int) -> str:
    return chr(ord("a") + n) if n < 26 else str(n)


def _step_back(start: tuple[float, float], end: tuple[float, float], along: float,
               aside: float) -> tuple[float, float]:
    """Return a point `along` before the end of an arrow, and `aside` from the arrow."""
    a, y = start
    b, z = end
    length = math.hypot(b - a, z - y)
    ux, uy = (b - a) / length, (z - y) / length
    return b - along * ux + aside * uy, z - along * uy - aside * ux


def _spread(i: int, k: int) -> float:
    """Return the vertical offset of arrow i of k, so that arrows between the same rows do not overlap."""
    return 0.0 if k < 2 else (i / (k - 1) - 0.5) * 26


def _bytes(n: int, short: bool = False) -> str:
    for unit, size in (("MB", 1 << 20), ("KB", 1 << 10)):
        if n >= 10 * size:
            return f"{n / size:.0f} {unit}"
    if short:
        return f"{n}"
    return f"{n} bytes" if n != 1 else "1 byte"


def draw(route, path: str | os.PathLike | None = None) -> str:
    """Return the diagram of `route` as SVG text. If `path` is not None, also write it there."""
    text = _Picture(route).text()
    if path is not None:
        write_text(path, text)
    return text
