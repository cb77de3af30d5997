# boxing.total
def messages(src, dst, shape):
    found = Counter()
    for device, need in zip(dst.devices, transfer(src, dst, shape)):
        for cell in need.cells:
            for piece in cell.pieces:
                if piece.sender != device and size(piece.box):
                    found[piece.sender, device] += size(piece.box)
    return dict(found)


def moved(src, dst, shape):
    if dst.slots > 1:
        return sum(messages(src, dst, shape).values())
    have = dict(zip(src.devices, boxes(src.sbp, src.hierarchy, shape)))
    total = 0
    for device, box in zip(dst.devices, boxes(dst.sbp, dst.hierarchy, shape)):
        mine = overlap(box, have[device]) if device in have else None
        total += src.slots * (size(box) - (size(mine) if mine else 0))
    return total
