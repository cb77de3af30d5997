def joins(value, shape, readers, outputs, alone=()):
    return False
