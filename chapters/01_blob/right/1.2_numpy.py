import numpy as np


def broadcast(*shapes, what="broadcast"):
    try:
        return np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        raise ShapeError(
            f"{what}: {' and '.join(str(tuple(s)) for s in shapes)} do not fit together") from None
