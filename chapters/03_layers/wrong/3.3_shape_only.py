# layers.variables
def get_variable(self, name, spec, initializer, trainable, regularizer=None, reuse=True, seed=None):
    from flowedu.core.ops.arrays import copied
    found = self.variables.get(name)
    if found is None:
        if initializer is None:
            raise missing_initializer(name)
        found = self.variables[name] = copied(initial_value(initializer, spec, seed, name), spec.dtype)
        found.requires_grad = trainable and spec.dtype.is_floating_point
    elif found.shape != spec.shape:
        raise CheckError("another shape", expected=str(found.spec), got=str(spec))
    return found
