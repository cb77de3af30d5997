# boxing.arrives
def messages(src, dst, shape):
    found = Counter()
    for device, need in zip(dst.devices, transfer(src, dst, shape)):
        for cell in need.cells:
            for piece in cell.pieces[:1]:
                if piece.sender != device and size(piece.box):
                    found[piece.sender, device] += size(piece.box)
    return dict(found)


def moved(src, dst, shape):
    return sum(messages(src, dst, shape).values())
