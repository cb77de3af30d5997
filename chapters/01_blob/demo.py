"""Demo of chapter 1: draws three views of one block of memory, and measures the time that reuse saves."""
import argparse
import time
from pathlib import Path

import flowedu as flow
from flowedu.fast.memory import set_cache
from flowedu.show.svg import FILLS, GREY, Drawing
from flowedu_course.demo import opening

CELL = 40


def draw_view(d: Drawing, left: float, top: float, title: str, t, base) -> None:
    """Draw one view as a grid. Elements of the same row of `base` have the same colour."""
    numbers = t.numpy()
    offset = (t.address - base.address) // base.dtype.bytes
    d.text(left, top - 42, title, 17, "start")
    d.text(left, top - 22, f"shape {tuple(t.shape)}   strides {t.strides}   offset {offset}", 13,
           "start", GREY)
    for i in range(t.shape[0]):
        for j in range(t.shape[1]):
            n = int(numbers[i, j])
            d.box(left + j * CELL, top + i * CELL, CELL, CELL, str(n), FILLS[n // 4])


def picture(path: Path) -> Path:
    """Draw the block and, below it, three views of the block."""
    t = flow.tensor([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], dtype=flow.float32)
    d = Drawing(900, 370)
    d.text(30, 30, "the block: 12 cells of 4 bytes", 17, "start")
    for n in range(12):
        d.box(30 + n * CELL, 42, CELL, CELL, str(n), FILLS[n // 4])
    d.text(30 + 12 * CELL + 16, 67, "cell of [i, j] = offset + i * strides[0] + j * strides[1]", 13,
           "start", GREY)
    for left, title, seen in ((30, "t", t), (330, "t.T", t.T), (610, "t[1:, ::2]", t[1:, ::2])):
        draw_view(d, left, 190, title, seen, t)
    return d.save(path)


def fill_time(reuse: bool) -> float:
    """Return the time in seconds of a relu of 12 million elements, with or without reuse of memory."""
    set_cache(reuse)
    x = flow.zeros((12_000_000,))
    best = 1e9
    for _ in range(5):
        start = time.perf_counter()
        y = x.relu()
        best = min(best, time.perf_counter() - start)
        del y
    set_cache(True)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/chapter-1"), help="folder for the picture")
    out = parser.parse_args().out
    opening(__file__)
    path = picture(out / "strides.svg")
    print(f"one block, three views: {path}")
    fresh, reused = fill_time(False), fill_time(True)
    print(f"relu of 12 million elements: {fresh * 1e3:.1f} ms with new memory, {reused * 1e3:.1f} ms with "
          f"reused memory ({fresh / reused:.1f} times faster)")


if __name__ == "__main__":
    main()
