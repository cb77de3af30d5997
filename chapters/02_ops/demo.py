"""Demo of chapter 2: draws the tape of an expression, and prints the ops of its forward and backward pass."""
import argparse
from pathlib import Path

import flowedu as flow
from flowedu.core.eager.dispatch import TapeNode
from flowedu.core.ops.call import call_below, interpreter
from flowedu.show.svg import FILLS, GREY, Drawing
from flowedu_course.demo import opening

WIDTH, HEIGHT = 150, 54                             # size of boxes, in pixels
ACROSS, DOWN = 205, 96                              # distance of boxes, in pixels


class Names:
    """An interpreter that records the names of the called ops and passes each call on."""

    def __init__(self):
        self.seen = []

    def run(self, op, inputs, attrs):
        self.seen.append(op.name)
        return call_below(op, inputs, attrs)


def reachable(node) -> list:
    """Return all nodes and leaf tensors that `node` depends on, each after its inputs."""
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
    """Return the names of the values that the node keeps for the gradient of its op."""
    op = node.op
    return [op.inputs[i] if i >= 0 else op.outputs[~i] for i in op.saved]


def places(order: list) -> dict:
    """Return {id of a node: (x, y)}. A node is one column to the right of its rightmost input."""
    column = {}
    for n in order:
        column[id(n)] = max((column[id(e)] + 1 for e in getattr(n, "edges", ()) if e is not None), default=0)
    for n in reversed(order):                           # move a leaf next to its first reader
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
    """Draw the tape of `result`. names: {id of a leaf tensor: its name}."""
    order = reachable(result.grad_fn)
    spots = places(order)
    d = Drawing(int(max(x for x, _ in spots.values())) + WIDTH + 30,
                int(max(y for _, y in spots.values())) + 130)
    d.text(30, 36, "the tape of  h = sigmoid(x @ w + b);  loss = (h * h + h).sum()", 17, "start")
    d.text(30, 60, "an arrow leads from a call to the origin of an input; backward follows the arrows, and "
           "adds the gradients of all arrows into a box", 13, "start", GREY)
    for n in order:
        edges = [e for e in getattr(n, "edges", ()) if e is not None]
        for i, e in enumerate(edges):
            x1, y1 = spots[id(n)]
            x2, y2 = spots[id(e)]
            if x1 - x2 > ACROSS:                        # route the arrow above the boxes in between
                d.line((x1 + 30, y1), (x1 + 30, y1 - 18), (x2 + WIDTH - 30, y1 - 18))
                d.arrow(x2 + WIDTH - 30, y1 - 18, x2 + WIDTH - 30, y2, GREY)
            else:
                down = HEIGHT * (i + 1) / (len(edges) + 1)
                d.arrow(x1, y1 + down, x2 + WIDTH, y2 + down, GREY)
    for n in order:
        x, y = spots[id(n)]
        if isinstance(n, TapeNode):
            d.box(x, y, WIDTH, HEIGHT, f"{n.op.name}\n{list(n.entry.specs[0].shape)}", FILLS[0])
            d.text(x + WIDTH / 2, y + HEIGHT + 17, "keeps " + (" and ".join(where_true(n)) or "nothing"), 12,
                   color=GREY)
        else:
            d.box(x, y, WIDTH, HEIGHT, f"{names[id(n)]}\n{list(n.shape)}", FILLS[1])
    d.text(30, d.height - 18, "orange: a tensor with requires_grad, which receives .grad.   blue: a recorded "
           "call, with the names of the values that it keeps", 13, "start", GREY)
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
    print(f"the tape: {path}")


if __name__ == "__main__":
    main()
