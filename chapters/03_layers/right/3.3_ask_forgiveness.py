def get_variable(self, name, spec, initializer, trainable, regularizer=None, reuse=True, seed=None):
    from flowedu.core.eager.arrays import copied
    try:
        there = self.variables[name]
    except KeyError:
        if initializer is None:
            raise missing_initializer(name) from None
        there = copied(initial_value(initializer, spec, seed, name), spec.dtype)
        there.requires_grad = spec.dtype.is_floating_point and trainable
        self.variables[name] = there
    if there.spec == spec:
        return there
    raise CheckError(f"{name} is there", expected=str(there.spec), got=str(spec))
