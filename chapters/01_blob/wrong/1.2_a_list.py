# values.broadcasts
import numpy as np


def broadcast(*shapes, what='x'):
    try:
        return list(np.broadcast_shapes(*map(tuple, shapes)))
    except ValueError:
        raise ShapeError(f'{shapes}') from None
