"""Chapter 2's demo: the tape of a small expression, and what an interpreter sees of a forward and a backward pass."""
import argparse
from pathlib import Path

import flowedu as flow
from flowedu.core.eager.dispatch import TapeNode
from flowedu.core.ops.call import call_below, interpreter
from flowedu.learn.demo import opening
from flowedu.show.svg import FILLS, GREY, Drawing

WIDTH, HEIGHT, ACROSS, DOWN = 150, 54, 205, 96      # of a box; from one box to the next


class Names:
    """An interpreter that writes down which ops were called, and lets the one below do the work."""

    def __init__(self):
        self.seen = []

    def run(self, op, inputs, attrs):
        self.seen.append(op.name)
        return call_below(op, inputs, attrs)


def reachable(node) -> list:
    """All nodes and leaf tensors of the tape below `node`, earliest first."""
    order, seen = [], set()

    def visit(n):
        if n is None or id(n) in seen:
            return
        seen.add(id(n))
        for e in getattr(n, "edges", ()):
            visit(e)
        order.append(n)

    visit(node)
    return order


def where_true(node: TapeNode) -> list[str]:
    """Names of the values that the op's gradient asked for."""
    op = node.op
    return [op.inputs[i] if i >= 0 else op.outputs[~i] for i in op.saved]


def places(order: list) -> dict:
    """{id: (x, y)}: a node stands one column right of the last of its inputs."""
    column = {}
    for n in order:
        column[id(n)] = max((column[id(e)] + 1 for e in getattr(n, "edges", ()) if e is not None), default=0)
    for n in reversed(order):                           # a leaf moves right, next to its first reader
        if not isinstance(n, TapeNode):
            readers = [m for m in order if isinstance(m, TapeNode) and any(n is e for e in m.edges)]
            column[id(n)] = min(column[id(m)] for m in readers) - 1
    spots, used = {}, {}
    for n in order:
        c = column[id(n)]
        spots[id(n)] = (30 + c * ACROSS, 104 + used.setdefault(c, 0) * DOWN)
        used[c] += 1
    return spots


def picture(result, names: dict, path: Path) -> Path:
    """Draw the tape behind `result`. names: {id of a leaf tensor: what to call it}."""
    order = reachable(result.grad_fn)
    spots = places(order)
    d = Drawing(int(max(x for x, _ in spots.values())) + WIDTH + 30, int(max(y for _, y in spots.values())) + 130)
    d.text(30, 36, "the tape of  h = sigmoid(x @ w + b);  loss = (h * h + h).sum()", 17, "start")
    d.text(30, 60, "an arrow points to where an input came from: backward follows it, and adds up the gradients of "
           "all arrows into a box", 13, "start", GREY)
    for n in order:
        edges = [e for e in getattr(n, "edges", ()) if e is not None]
        for i, e in enumerate(edges):
            (x1, y1), (x2, y2) = spots[id(n)], spots[id(e)]
            if x1 - x2 > ACROSS:                        # over the heads of what stands in between
                d.line((x1 + 30, y1), (x1 + 30, y1 - 18), (x2 + WIDTH - 30, y1 - 18))
                d.arrow(x2 + WIDTH - 30, y1 - 18, x2 + WIDTH - 30, y2, GREY)
            else:
                down = HEIGHT * (i + 1) / (len(edges) + 1)
                d.arrow(x1, y1 + down, x2 + WIDTH, y2 + down, GREY)
    for n in order:
        x, y = spots[id(n)]
        if isinstance(n, TapeNode):
            d.box(x, y, WIDTH, HEIGHT, f"{n.op.name}\n{list(n.entry.specs[0].shape)}", FILLS[0])
            d.text(x + WIDTH / 2, y + HEIGHT + 17, "keeps " + (" and ".join(where_true(n)) or "nothing"), 12, color=GREY)
        else:
            d.box(x, y, WIDTH, HEIGHT, f"{names[id(n)]}\n{list(n.shape)}", FILLS[1])
    d.text(30, d.height - 18, "orange: yours, with requires_grad; .grad arrives here.   blue: one recorded call; what "
           "it keeps is named as in the op's record", 13, "start", GREY)
    return d.save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/chapter-2"), help="folder for the picture")
    out = parser.parse_args().out
    opening(__file__)
    x = flow.full((8, 16), 0.5)
    w, b = flow.full((16, 4), 0.1, requires_grad=True), flow.full((4,), 0.0, requires_grad=True)
    with interpreter(Names()) as forward:
        h = (x @ w + b).sigmoid()
        loss = (h * h + h).sum()
    path = picture(loss, {id(w): "w", id(b): "b"}, out / "tape.svg")
    with interpreter(Names()) as backward:
        loss.backward()
    print("forward: ", " ".join(forward.seen))
    print("backward:", " ".join(backward.seen))
    print(f"the tape in between: {path}")


if __name__ == "__main__":
    main()
