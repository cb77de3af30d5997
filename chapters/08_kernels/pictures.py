"""Drawing of the memory traffic, for the demo of chapter 8."""
from pathlib import Path

from flowedu.show.svg import FILLS, GREY, Drawing

ROW, LEFT = 30, 330
WIDTH, MOST = 560, 18


def traffic(kernels: dict[str, dict[str, int]], path: Path) -> Path:
    """Draw the bytes that each kernel transfers between memory and threads, and return the path.

    Memory transfers whole sectors of 32 bytes. The drawing shows the bytes that the threads requested, and
    the other bytes of the same sectors, which are not used. The kernels with the most bytes come first.

    Args:
        kernels: {name: counters}, as in the result of flow.cuda.profile.
        path: file for the SVG.
    """
    moved = {name: (c["global_bytes"], max(32 * c["sectors"], c["global_bytes"]))
             for name, c in kernels.items()}
    order = sorted(moved, key=lambda name: -moved[name][1])[:MOST]
    d = Drawing(LEFT + WIDTH + 260, 110 + ROW * len(order))
    d.text(30, 36, "Bytes between memory and threads, of each kernel in one step", 18, "start")
    for x, fill, words in ((30, FILLS[0], "asked for"), (150, FILLS[1],
                                                         "came along, in sectors of 32 bytes")):
        d.box(x, 54, 18, 18, fill=fill)
        d.text(x + 26, 68, words, 13, "start")
    scale = WIDTH / max((moved[name][1] for name in order), default=1)
    for i, name in enumerate(order):
        asked, all_ = moved[name]
        y = 92 + ROW * i
        d.text(LEFT - 12, y + 15, name, 13, "end")
        d.box(LEFT, y, max(1, asked * scale), ROW - 10, fill=FILLS[0])
        if all_ > asked:
            d.box(LEFT + asked * scale, y, (all_ - asked) * scale, ROW - 10, fill=FILLS[1])
        accesses = kernels[name]["global_loads"] + kernels[name]["global_stores"]
        each = f", {kernels[name]['sectors'] / accesses:.1f} sectors an access" if accesses else ""
        d.text(LEFT + all_ * scale + 10, y + 15, f"{size(all_)}{each}", 12, "start", GREY)
    return d.save(path)


def size(n: int) -> str:
    """Format a number of bytes in bytes, kB, or MB."""
    if n < 10_000:
        return f"{n:,} bytes"
    return f"{n / 1e3:,.0f} kB" if n < 10_000_000 else f"{n / 1e6:,.0f} MB"
