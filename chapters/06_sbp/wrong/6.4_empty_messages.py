# boxing.arrives
def messages(src: Layout, dst: Layout, shape: Shape) -> dict[tuple[int, int], int]:
    """{(from device, to device): elements} of a transfer."""
    found: Counter = Counter()
    for device, need in zip(dst.devices, transfer(src, dst, shape)):
        for cell in need.cells:
            for piece in cell.pieces:
                if piece.sender != device:
                    found[piece.sender, device] += size(piece.box)
    return dict(sorted(found.items()))


def moved(src: Layout, dst: Layout, shape: Shape) -> int:
    """The elements of a transfer: those of its messages. Where nothing is partial in the end they need no plan: each device
    gets what it wants of every addend, but for what it has."""
    if dst.slots > 1:
        return sum(messages(src, dst, shape).values())
    have = dict(zip(src.devices, boxes(src.sbp, src.hierarchy, shape)))
    total, slots = 0, src.slots
    for device, box in zip(dst.devices, boxes(dst.sbp, dst.hierarchy, shape)):
        mine = overlap(box, have[device]) if device in have else None
        total += slots * size(box) - (0 if mine is None else size(mine))
    return total
