def joins(value, shape, readers, outputs, alone=()):
    if value in outputs:
        return False
    if len(readers.get(value, ())) != 1:
        return False
    if tuple(value.shape) != tuple(shape):
        return False
    return bool(fusible(value.node, alone))
