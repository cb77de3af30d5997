"""SVG diagram of a graph: one box per op, in layers from the inputs down.

A diagram with more than BOXES boxes shows parts of the model instead (collapse.py). A second file shows all
boxes, or smaller parts of the model if there are more than MOST.

    layout    puts each box in the layer after its deepest input, and orders a layer by mean input positions
    drawing   draws boxes and lines; hovering over a box shows its name, its values, and the user's line
"""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from flowedu.core.graph.ir import GraphValue, Node
from flowedu.core.trace.tracer import op_type
from flowedu.fast.ops.fused import fused
from flowedu.show.boxes import Box
from flowedu.show.collapse import collapsed
from flowedu.show.svg import BOXES, MOST, Drawing

WIDTH, HEIGHT, GAP_X = 150, 34, 14
GAP_Y, MARGIN = 34, 20
LINES = 2000            # of a diagram in which a part of a model reads many other parts
LINK = "#0b5cad"
COLORS = {"input": "#ffffff", "variable": "#fff3c4", "forward": "#cfe3f2", "backward": "#f6d2ad",
          "update": "#d8ecc8", "output": "#ffffff"}


def boxes(nodes: Sequence[Node], outputs: Sequence[tuple[str, GraphValue]],
          part: Callable[[Node], str]) -> list[Box]:
    """Return the boxes of a node list.

    Args:
        outputs: (name, value) pairs.
        part: node -> "forward", "backward", or "update".
    """
    result: list[Box] = []
    of: dict[GraphValue, Box] = {}

    def source(v: GraphValue) -> Box:
        if v not in of:                                  # an input, a variable, or a host scalar
            kind = "input" if v.kind == "input" else "variable"
            of[v] = Box(v.name, _spec(v), kind, f"{v.kind} {v.name}\n{v.spec}")
            result.append(of[v])
        return of[v]

    for node in nodes:
        # An update does not show its variables and optimizer states as inputs.
        values = [x for x in node.inputs if x.kind == "node"] if node.mutates else node.inputs
        reads = list(dict.fromkeys(source(x) for x in values))
        label = op_type(node) if node.op is not fused else node.name
        tip = "\n".join([node.name, *(f"reads {x.name} {x.spec}" for x in node.inputs),
                         *(f"gives {y.name} {y.spec}" for y in node.outputs), node.line])
        written = [node.inputs[k].name for k in node.mutates]
        subtitle = ", ".join(_spec(y) for y in node.outputs[:1])
        if written:
            subtitle = f"writes {written[0]}" if len(written) == 1 else f"writes {len(written)} variables"
        module = node.name.rpartition("-")[0].rpartition("-")[0]
        box = Box(label, subtitle, part(node), tip, tuple(module.split(".")) if module else (), reads)
        result.append(box)
        of.update(dict.fromkeys(node.outputs, box))
    result += [Box(name, _spec(v), "output", f"output {name}\n{v.spec}", reads=[source(v)])
               for name, v in outputs]
    return result


def layout(all_boxes: Sequence[Box]) -> list[list[Box]]:
    """Set the layer and position of every box, and return the layers."""
    for box in all_boxes:
        box.layer = 1 + max((r.layer for r in box.reads), default=-1)
    first: dict[int, int] = {}
    for box in all_boxes:
        for r in box.reads:
            first[id(r)] = min(first.get(id(r), box.layer), box.layer)
    for box in all_boxes:                                # a box without inputs goes above its first reader
        if not box.reads and id(box) in first:
            box.layer = max(first[id(box)] - 1, 0)
    layers: list[list[Box]] = [[] for _ in range(1 + max((b.layer for b in all_boxes), default=-1))]
    for box in all_boxes:
        layers[box.layer].append(box)
    readers: dict[int, list[Box]] = {}
    for box in all_boxes:
        for r in box.reads:
            readers.setdefault(id(r), []).append(box)
    for sweep in range(4):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            mean = {id(b): _mean(b.reads if down else readers.get(id(b), []), b.x) for b in layer}
            layer.sort(key=lambda b: mean[id(b)])
            middle = (len(layer) - 1) / 2
            for i, b in enumerate(layer):
                b.x = i - middle
    return layers


def _mean(others: Sequence[Box], default: float) -> float:
    return sum(o.x for o in others) / len(others) if others else default


def drawing(title: str, all_boxes: Sequence[Box], beside: tuple[str, str] = ("", "")) -> Drawing:
    """Draw boxes, with an optional link: `beside` is its file name and text."""
    layers = layout(all_boxes)
    columns = max((len(layer) for layer in layers), default=1)
    width = 2 * MARGIN + columns * (WIDTH + GAP_X)
    d = Drawing(max(width, 2 * MARGIN + 10 * len(title)), 2 * MARGIN + 50 + len(layers) * (HEIGHT + GAP_Y),
                title)

    def at(b: Box) -> tuple[float, float]:
        return d.width / 2 + b.x * (WIDTH + GAP_X), MARGIN + 50 + b.layer * (HEIGHT + GAP_Y)

    d.text(MARGIN, MARGIN + 4, title, 14, "start")
    if beside[0]:
        with d.group(href=beside[0]):
            d.text(MARGIN, MARGIN + 24, beside[1], 12, "start", LINK)
    gaps = [sorted({at(b)[0] + side * (WIDTH + GAP_X) / 2 for b in layer for side in (-1, 1)})
            for layer in layers]
    shown = _choose_lines(all_boxes)
    for b in all_boxes:
        x, y = at(b)
        for r in shown[id(b)]:
            d.path(*_edge(at(r), (x, y), gaps[r.layer + 1:b.layer]), fill="none", stroke="#9a9a9a")
    for b in all_boxes:
        x, y = at(b)
        hidden = len(b.reads) - len(shown[id(b)])
        with d.group(f"{b.tip}\nreads {hidden} more boxes" if hidden else b.tip):
            d.box(x - WIDTH / 2, y, WIDTH, HEIGHT, "", COLORS[b.kind], line="#555555",
                  rx=14 if b.kind in ("input", "output") else 3)
            d.text(x, y + 15, _cut(b.title), 11)
            d.text(x, y + 28, _cut(b.subtitle, 28), 9, color="#444444")
    return d


def _choose_lines(all_boxes: Sequence[Box]) -> dict[int, list[Box]]:
    """Return the boxes to which each box gets a line: all that it reads, or the nearest if there are many."""
    if sum(len(b.reads) for b in all_boxes) <= LINES:
        return {id(b): b.reads for b in all_boxes}
    most = LINES // len(all_boxes)
    return {id(b): sorted(b.reads, key=lambda r: -r.layer)[:most] for b in all_boxes}


def _edge(start: tuple[float, float], end: tuple[float, float],
          between: Sequence[Sequence[float]]) -> list[tuple]:
    """Return the path from a box to one in a later layer, through the gaps of the layers in between."""
    x0 = start[0]
    x1, last = end
    x, y = x0, start[1] + HEIGHT
    steps: list[tuple] = [("M", (x, y))]
    for gaps in [*between, None]:
        straight = x0 + (x1 - x0) * (y + GAP_Y - start[1]) / (last - start[1])
        on = x1 if gaps is None else min(gaps, key=lambda g: abs(g - straight))         # noqa: B023
        steps.append(("C", (x, y + GAP_Y / 2), (on, y + GAP_Y / 2), (on, y + GAP_Y)))
        x, y = on, y + GAP_Y + HEIGHT
        steps += [("L", (x, y))] if gaps is not None else []
    return steps


def _cut(text: str, most: int = 24) -> str:
    return text if len(text) <= most else "…" + text[1 - most:]


def _spec(v: GraphValue) -> str:
    return f"{v.dtype.name} {'x'.join(map(str, v.shape)) or 'number'}"


def graph_boxes(compiled, optimized: bool) -> tuple[str, list[Box]]:
    """Return the title and the boxes of a compiled nn.Graph's diagram, as traced or after the passes."""
    traced = {y.name for o in compiled.operators[:compiled.graph.forward] for y in o.node.outputs}
    names = [n for n, text in compiled.outputs if text is not None]
    if optimized and compiled.spread is not None:              # the first rank of this process
        g, program = compiled.spread.ranks[compiled.spread.engine.rank], compiled.spread.first
        mine = [i for i in range(len(names)) if compiled.where[i] in g.outputs]
        nodes, names = program.graph.nodes, [names[i] for i in mine]
        values = [program.graph.outputs[g.outputs.index(compiled.where[i])] for i in mine]
    elif optimized:
        program = compiled.program
        nodes, values = (program.graph.nodes, [program.graph.outputs[i]
                                               for i in compiled.where[:len(compiled.fetched)]])
    else:
        nodes, values = [_Traced(o) for o in compiled.operators], compiled.fetched

    def part(node) -> str:
        if node.mutates:
            return "update"
        return "forward" if any(y.name in traced for y in node.outputs) else "backward"

    result = boxes(nodes, list(zip(names, values)), part)
    count = sum(b.kind in ("forward", "backward", "update") for b in result)
    return f"{compiled.owner.name}, {'after the passes' if optimized else 'as traced'}: {count} ops", result


def graph_svg(compiled) -> str:
    """Draw a compiled nn.Graph as traced, in at most BOXES boxes, and return the SVG text."""
    title, made = graph_boxes(compiled, False)
    return drawing(title, collapsed(made, BOXES)).svg()


def draw_graph(compiled, path: str | os.PathLike, optimized: bool) -> Path:
    """Draw a compiled nn.Graph, as traced or after the passes, to `path` (.svg).

    With more than BOXES boxes, it shows parts of the model and links to `...-all.svg`, which shows all ops.
    With more than MOST boxes, it links to `...-parts.svg`, which shows parts of the model in at most MOST
    boxes.
    """
    title, made = graph_boxes(compiled, optimized)
    path = Path(path)
    if len(made) <= BOXES:
        return drawing(title, made).save(path)
    detailed = collapsed(made, MOST)
    name, text = ("all", "all of them") if len(made) <= MOST else ("parts", f"{len(detailed)} boxes")
    second = path.with_name(f"{path.stem}-{name}{path.suffix}")
    drawing(title, detailed).save(second)
    return drawing(title, collapsed(made, BOXES), (second.name, f"{text}: {second.name}")).save(path)


class _Traced:
    """Node with the inputs it had before the passes."""

    def __init__(self, operator):
        node = operator.node
        self.op, self.name = node.op, node.name
        self.line, self.outputs = node.line, node.outputs
        self.inputs, self.mutates = operator.inputs, node.mutates
