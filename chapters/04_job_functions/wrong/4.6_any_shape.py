# fusion.same_values
def joins(value, shape, readers, outputs, alone=()):
    return fusible(value.node, alone) and value not in outputs and len(readers[value]) == 1
