"""Drawings for gpu.md: threads, sectors, banks, a tree, the roofline, and the counters of a ladder."""
from __future__ import annotations

import math
from pathlib import Path

from flowedu.show.svg import FILLS, GREY, INK, Drawing

HOT, COLD = "#f4a259", "white"
# Data sheet of an H200: float32 operations per second, and bytes of memory per second.
PEAK, BANDWIDTH = 67e12, 4.8e12


def threads(path: Path) -> Path:
    """Draw three blocks of four threads for ten elements. Two threads have no element."""
    d = Drawing(860, 250)
    size, n = 62, 10
    d.text(40, 34, "grid=3, block=4: 12 threads for 10 elements", 18, "start")
    for b in range(3):
        d.text(40 + b * (4 * size + 16) + 2 * size, 64, f"block {b}", 14)
        for t in range(4):
            i, x = 4 * b + t, 40 + b * (4 * size + 16) + t * size
            d.box(x, 74, size - 4, 44, f"thread {t}", FILLS[b] if i < n else "white", 12)
            if i < n:
                d.arrow(x + size / 2 - 2, 120, 96 + i * 68, 176)
                d.box(68 + i * 68, 178, 56, 36, f"z[{i}]", FILLS[b], 13)
            else:
                d.text(x + size / 2 - 2, 140, f"i = {i}", 13, color=GREY)
    d.text(40, 240, "i = blockIdx.x * blockDim.x + threadIdx.x; the last two find i < n false and do nothing",
           13, "start", GREY)
    return d.save(path)


def sectors(path: Path) -> Path:
    """Draw the sectors that a warp reads if its 32 lanes read floats at a distance of 1, 2, and 32."""
    d = Drawing(1000, 330)
    for k, (step, words) in enumerate(((1, "neighbours: 4 sectors of 32 bytes, every byte is used"),
                                       (2, "every second float: 8 sectors, half of what travels is used"),
                                       (32, "a column: 32 sectors, an eighth is used"))):
        y = 30 + 104 * k
        d.text(40, y, f"x[{'lane' if step == 1 else f'{step} * lane'}]   {words}", 15, "start")
        count = min(4 * step, 32)
        width = min(920 / count, 60)
        used = {1: 1.0, 2: 0.5}.get(step, 0.125)
        for i in range(count):
            x = 40 + i * width
            d.add("rect", x=x, y=y + 14, width=(width - 4) * used, height=38, fill=HOT)
            d.add("rect", x=x, y=y + 14, width=width - 4, height=38, fill="none", stroke=INK)
    d.text(40, 322, "a box is a sector, 8 floats; filled is what the warp asked for", 13, "start", GREY)
    return d.save(path)


def banks(path: Path) -> Path:
    """Draw the banks of a column in a 4 x 4 tile with four banks, without and with an unused column."""
    d = Drawing(820, 300)
    for k, (width, title) in enumerate(((4, "rows of 4: a column lies in one bank"),
                                        (5, "rows of 5: in four"))):
        left = 40 + 400 * k
        d.text(left, 34, title, 16, "start")
        for b in range(4):
            d.text(left + 72 * b + 34, 66, f"bank {b}", 13, color=GREY)
        for i in range(4 * width):
            row, col = divmod(i, width)
            name = f"({row}, {col})" if col < 4 else "unused"
            d.box(left + 72 * (i % 4), 76 + 42 * (i // 4), 68, 36, name, HOT if col == 1 else COLD, 13,
                  line=INK if col < 4 else GREY)
    return d.save(path)


def tree(path: Path) -> Path:
    """Draw the sum of eight numbers in three steps, with a barrier before each step."""
    d = Drawing(1000, 320)
    numbers = [3, 1, 4, 1, 5, 9, 2, 6]
    y, cell = 40, 84
    while True:
        for i, v in enumerate(numbers):
            d.box(40 + i * cell, y, 60, 36, str(v), FILLS[0])
        half = len(numbers) // 2
        if not half:
            break
        for i in range(half):
            d.arrow(70 + i * cell, y + 38, 70 + i * cell, y + 74)
            d.arrow(70 + (i + half) * cell, y + 38, 82 + i * cell, y + 74, HOT)
        d.line((30, y + 56), (720, y + 56))
        d.text(730, y + 60, f"__syncthreads(), then half = {half}", 13, "start", GREY)
        numbers = [numbers[i] + numbers[i + half] for i in range(half)]
        y += 76
    return d.save(path)


def ladder(counts: dict[str, dict[str, int]], results: int, path: Path) -> Path:
    """Draw a row of bars for each step: bytes and accesses per result, and barriers."""
    columns = (("bytes asked of main memory\nfor each result", lambda c: c["global_bytes"] / results),
               ("accesses of warps to main memory\nfor 32 results", lambda c: 32 * accesses(c) / results),
               ("accesses of warps to shared memory\nfor 32 results",
                lambda c: 32 * (c["shared_loads"] + c["shared_stores"]) / results),
               ("barriers of blocks", lambda c: c["barriers"]))
    d = Drawing(1180, 96 + 40 * len(counts))
    for k, (title, value) in enumerate(columns):
        left, numbers = 130 + 260 * k, [value(c) for c in counts.values()]
        for i, line in enumerate(title.split("\n")):
            d.text(left, 28 + 18 * i, line, 13, "start")
        for i, v in enumerate(numbers):
            y, width = 70 + 40 * i, 170 * v / max(*numbers, 1)
            d.box(left, y, max(width, 1), 26, "", FILLS[k], line=GREY)
            d.text(left + width + 6, y + 18, f"{v:,.4g}" if v < 1000 else f"{v:,.0f}", 13, "start")
    for i, name in enumerate(counts):
        d.text(120, 88 + 40 * i, name, 14, "end")
    return d.save(path)


def accesses(c: dict[str, int]) -> int:
    return c["global_loads"] + c["global_stores"]


def roofline(points: dict[str, float], path: Path) -> Path:
    """Draw the roofline, and a point for each kernel of `points`, {name: operations per byte}."""
    d = Drawing(900, 420)
    # Limits of the axes, as powers of ten: operations per byte, and operations per second.
    low, high = -2, 3
    bottom, top = 10.5, 14.2

    def at(intensity: float) -> tuple[float, float]:
        speed = min(PEAK, BANDWIDTH * intensity)
        return (90 + 760 * (math.log10(intensity) - low) / (high - low),
                360 - 310 * (math.log10(speed) - bottom) / (top - bottom))

    d.line(at(10.0 ** low), at(PEAK / BANDWIDTH), at(10.0 ** high), color=INK)
    d.text(240, 110, f"memory: {BANDWIDTH / 1e12:g} TB/s", 13, "end", GREY)
    d.text(at(300)[0], at(300)[1] - 12, f"arithmetic: {PEAK / 1e12:g} TFLOP/s", 13, color=GREY)
    for power in range(low, high + 1):
        x = 90 + 760 * (power - low) / (high - low)
        d.text(x, 384, f"{10.0 ** power:g}", 12)
        d.line((x, 360), (x, 366))
    d.text(470, 408, "operations for each byte of main memory", 13)
    for name, intensity in points.items():
        x, y = at(intensity)
        d.add("circle", cx=x, cy=y, r=6, fill=HOT, stroke=INK)
        d.text(x + 10, y + 18, f"{name}: {min(PEAK, BANDWIDTH * intensity) / 1e12:.3g} TFLOP/s", 13, "start")
    return d.save(path)


def intensities() -> dict[str, float]:
    """Return {kernel: operations per byte}, computed on paper for large n and no cache."""
    return {"z = x + y": 1 / 12, "product, naive": 2 / 8, "product, tiles of 16": 2 * 16 / 8,
            "product, tiles of 128": 2 * 128 / 8}


def draw(folder: Path) -> list[Path]:
    """Draw all files that need no counters."""
    return [threads(folder / "threads.svg"), sectors(folder / "sectors.svg"), banks(folder / "banks.svg"),
            tree(folder / "tree.svg"), roofline(intensities(), folder / "roofline.svg")]


def draw_counted(folder: Path) -> list[Path]:
    """Draw the files that need counters, which only the simulator has."""
    from flowedu.cuda.lessons import LADDERS
    product = LADDERS["product"]
    return [ladder(product.counts(), product.size[0] * product.size[1], folder / "product.svg")]
