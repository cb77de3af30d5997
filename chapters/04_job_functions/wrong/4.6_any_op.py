# fusion.same_values
def joins(value, shape, readers, outputs, alone=()):
    return (value.node is not None and value.shape == shape and value not in outputs
            and len(readers[value]) == 1)
