def messages(src, dst, shape):
    found = {}
    for device, need in reversed(list(zip(dst.devices, transfer(src, dst, shape)))):
        for piece in (p for cell in need.cells for p in cell.pieces):
            if piece.sender != device and size(piece.box):
                key = piece.sender, device
                found[key] = found.get(key, 0) + size(piece.box)
    return found


def moved(src, dst, shape):
    return sum(messages(src, dst, shape).values())
