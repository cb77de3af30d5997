def broadcast(*shapes, what="broadcast"):
    import numpy
    try:
        return numpy.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        raise ShapeError(f"{what}: {' and '.join(str(tuple(s)) for s in shapes)} do not broadcast",
                         expected="axes that are equal or 1, from the right") from None
