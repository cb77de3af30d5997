# fusion.left_alone
def joins(value, shape, readers, outputs, alone=()):
    return fusible(value.node) and value.shape == shape and value not in outputs and len(readers[value]) == 1
