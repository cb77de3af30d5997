# values.reshape_views
def reshape_strides(shape, strides, new):
    return row_major(new) if tuple(strides) == row_major(shape) else None
