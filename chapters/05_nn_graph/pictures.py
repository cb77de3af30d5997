"""Figure of halves.md: histograms of gradients before and after the loss is multiplied by 65,536.

    python chapters/05_nn_graph/pictures.py [FILE]           default: pictures/halves.svg in this folder
"""
import sys
from pathlib import Path

import numpy as np

import flowedu as flow
import flowedu.nn.functional as F
from flowedu import nn
from flowedu.show.svg import FILLS, GREY, Drawing

PARTS, SCALE = 65536, 16                           # divisor of the loss; exponent of its factor
LOW, HIGH, STEP = -44, 22, 2                       # exponents of two: first, last, per bar
# In float16, values below 2 ** SMALLEST become 0, and values from 2 ** LARGEST on become infinite.
SMALLEST, LARGEST = -25, 16


def gradients() -> np.ndarray:
    """Return the float32 gradients of the lesson's network after 20 steps."""
    flow.manual_seed(0)
    rng = np.random.default_rng(0)
    t, side = np.sqrt(rng.random(256)) * 3 * np.pi, rng.integers(0, 2, 256)
    at = t + np.pi * side
    points = flow.tensor(np.stack([t * np.cos(at), t * np.sin(at)], 1).astype("f4") / 5)
    net = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    adam = flow.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(20):
        adam.zero_grad()
        (F.cross_entropy(net(points), flow.tensor(side)) / PARTS).backward()
        adam.step()
    return np.concatenate([p.grad.numpy().ravel() for p in net.parameters()])


def lost(found: np.ndarray, moved: int = 0) -> float:
    """Return the share of values that become 0 in float16 after multiplication by 2 ** moved."""
    return float(np.mean((found * 2.0 ** moved).astype(np.float16) == 0))


def draw(path: Path) -> Path:
    """Draw two histograms over powers of two, one above the other, and return the path."""
    found = gradients()
    d = Drawing(760, 420, "Sizes of gradients before and after the loss is multiplied by 65,536, beside what "
                "float16 holds")

    def x(power: float) -> float:
        return 40 + (power - LOW) * 680 / (HIGH - LOW)

    for row, (moved, what) in enumerate(((0, "as they are"), (SCALE, "loss multiplied by 65,536"))):
        top, floor = 40 + 190 * row, 190 + 190 * row
        d.add("rect", x=x(LOW), y=top, width=x(SMALLEST) - x(LOW), height=floor - top, fill=FILLS[3])
        d.add("rect", x=x(SMALLEST), y=top, width=x(LARGEST) - x(SMALLEST), height=floor - top, fill=FILLS[2])
        d.add("rect", x=x(LARGEST), y=top, width=x(HIGH) - x(LARGEST), height=floor - top, fill=FILLS[3])
        counts, edges = np.histogram(np.log2(np.abs(found[found != 0])) + moved,
                                     np.arange(LOW, HIGH + 1, STEP))
        bars = [f"M{x(e) + 1:.1f} "
                f"{floor}v{-110 * n / counts.max():.1f}h{680 * STEP / (HIGH - LOW) - 2:.1f}V{floor}z"
                for n, e in zip(counts, edges) if n]
        d.add("path", d="".join(bars), fill="#2a6f97")
        d.text(x(LOW) + 8, top + 18, f"{what}: {lost(found, moved):.0%} become 0", 14, anchor="start")
        for power in range(LOW + 4, HIGH, 10):
            d.text(x(power), floor + 16, f"2^{power}", 11, color=GREY)
    for low, high, said in ((LOW, SMALLEST, "0 in float16"), (SMALLEST, LARGEST, "what float16 holds"),
                            (LARGEST, HIGH, "infinite")):
        d.text((x(low) + x(high)) / 2, 28, said, 13)
    return d.save(path)


if __name__ == "__main__":
    print(draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures" / "halves.svg"))
