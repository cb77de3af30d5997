# values.refuses
def broadcast(*shapes, what="broadcast"):
    rank = max((len(s) for s in shapes), default=0)
    out = []
    for axis in range(rank):
        sizes = {s[axis - rank + len(s)] for s in shapes if axis - rank + len(s) >= 0} - {1}
        if len(sizes) > 1:
            raise ShapeError("the shapes do not fit")
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)
