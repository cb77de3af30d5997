# fusion.no_more_work
def joins(value, shape, readers, outputs, alone=()):
    return (fusible(value.node, alone) and len(value.shape) == len(shape) and value not in outputs
            and len(readers[value]) == 1)
