"""Figures of chapter 7's demo."""
from pathlib import Path

import flowedu as flow
from flowedu.show.svg import FILLS, GREY, Drawing

ALIGNMENT = 16


def memory(buffer: flow.TensorBuffer, path: Path) -> Path:
    """Draw the same tensors as a TensorBuffer and as a TensorList, at their real addresses."""
    tensors = flow.TensorList([a[None] for a in buffer])
    n, left, width = len(buffer), 40, 1120
    d = Drawing(width + 2 * left, 580)

    d.text(left, 34, f"TensorBuffer: {n} allocations, in the order of their addresses", 18, "start")
    cell, blocks = width / n, buffer.memory()
    for i, b in enumerate(blocks):
        d.box(left + i * cell, 56, cell - 8, 62, f"{i}\n{shape(b)}\n{b.address:#x}", FILLS[i % len(FILLS)],
              13)
    order = sorted(range(n), key=lambda i: blocks[i].address)
    gap = 26
    scale = (width - gap * (n - 1)) / sum(b.nbytes for b in blocks)
    x = left
    for place, i in enumerate(order):
        b, w = blocks[i], blocks[i].nbytes * scale
        d.arrow(left + i * cell + (cell - 8) / 2, 118, x + w / 2, 212)
        d.box(x, 212, w, 54, f"{i}", FILLS[i % len(FILLS)])
        d.text(x + w / 2, 284, f"{b.nbytes} bytes", 12)
        if place + 1 < n:
            hole = blocks[order[place + 1]].address - b.address - b.nbytes
            d.text(x + w + gap / 2, 244, "...", 14, color=GREY)
            d.text(x + w + gap / 2, 306 + 16 * (place % 2), f"{size(hole)} of other things", 11, color=GREY)
        x += w + gap

    top = 380
    d.text(left, top,
           f"TensorList: one allocation of {tensors.nbytes} bytes at {tensors.data.ctypes.data:#x}", 18,
           "start")
    d.text(left, top + 40, "offsets", 13, "start")
    x = left
    scale = width / max(tensors.nbytes, 1)
    for i, b in enumerate(tensors.memory()):
        w = b.nbytes * scale
        d.box(x, top + 62, w, 54, f"{i}\n{shape(b)}" if w > 80 else str(i), FILLS[i % len(FILLS)], 13)
        d.arrow(x, top + 46, x, top + 61)
        d.text(x + (60 if i == 0 else 0), top + 40, str(tensors.offsets[i]), 13)
        x += w
    d.arrow(x, top + 46, x, top + 61)
    d.text(x, top + 40, str(tensors.offsets[-1]), 13, "end")
    for i, line in enumerate((
            "The buffer: any tensor can be replaced by a larger one; to copy it all, follow every pointer.",
            "The list: one copy takes it all, and reading runs straight ahead; a tensor that grows moves all "
            "behind it.")):
        d.text(left, top + 150 + 24 * i, line, 14, "start")
    return d.save(path)


def shape(block) -> str:
    return "x".join(map(str, block.shape))


def size(n: int) -> str:
    """Return a number of bytes as a short text."""
    if n < 10_000:
        return f"{n:,} bytes"
    return f"{n / 1024:,.0f} kB" if n < 10_000_000 else f"{n / 2**20:,.0f} MB"


def seen(buffer: flow.TensorBuffer, side: int, path: Path) -> Path:
    """Draw the images as decoded, resized, and aligned in one batch."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    resized = flow.image.Resize(buffer, (side, side), channels=1)[0].numpy()
    aligned = flow.image.batch_align(buffer, (64, 64, 1), flow.uint8, ALIGNMENT).numpy()
    rows = ((list(buffer), "as decoded: every one has a size of its own"),
            (resized, f"Resize: all {side} x {side}; what was narrow is stretched"),
            (aligned, f"batch_align: all {aligned.shape[1]} x {aligned.shape[2]}, the largest rounded up to "
             f"a multiple of {ALIGNMENT}; zeros to the right and below"))
    most = max(64, *(max(a.shape[:2]) for a in buffer))
    figure = Figure(figsize=(1.6 * len(buffer), 5.8), layout="constrained")
    for part, (items, title) in zip(figure.subfigures(len(rows), 1), rows):
        part.suptitle(title, fontsize=11)
        for axes, a in zip(part.subplots(1, len(items)), items):
            axes.imshow(a[:, :, 0], cmap="gray_r", vmin=0, vmax=255, extent=(0, a.shape[1], a.shape[0], 0))
            axes.set(xlim=(-1, most + 1), ylim=(most + 1, -1))
            axes.add_patch(matplotlib.patches.Rectangle((0, 0), a.shape[1], a.shape[0], fill=False,
                                                        color="#1f5f99"))
            axes.set_title(f"{a.shape[0]} x {a.shape[1]}", fontsize=8)
            axes.axis("off")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path
