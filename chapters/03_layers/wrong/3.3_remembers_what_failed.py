# layers.variables
def get_variable(self, name, spec, initializer, trainable, regularizer=None, reuse=True, seed=None):
    from flowedu.core.ops.arrays import copied
    found = self.variables.setdefault(name, None)
    if found is None:
        if initializer is None:
            raise missing_initializer(name)
        found = self.variables[name] = copied(initial_value(initializer, spec, seed, name), spec.dtype)
        found.requires_grad = trainable and spec.dtype.is_floating_point
    if found.spec != spec:
        raise CheckError(f"variable {name}: {found.spec} is there", expected=str(spec), got=str(found.spec))
    return found
