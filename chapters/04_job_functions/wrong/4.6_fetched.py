# fusion.same_values
def joins(value, shape, readers, outputs, alone=()):
    return fusible(value.node, alone) and value.shape == shape and len(readers[value]) == 1
