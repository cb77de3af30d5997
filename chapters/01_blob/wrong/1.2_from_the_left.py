# values.broadcasts
def broadcast(*shapes, what="broadcast"):
    out = []
    for axis in range(max((len(s) for s in shapes), default=0)):
        sizes = {s[axis] for s in shapes if axis < len(s)} - {1}
        if len(sizes) > 1:
            raise ShapeError(" and ".join(str(tuple(s)) for s in shapes))
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)
