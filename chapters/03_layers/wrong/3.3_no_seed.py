# layers.variables
def get_variable(self, name, spec, initializer, trainable, regularizer=None, reuse=True, seed=None):
    from flowedu.core.eager.arrays import copied
    if name not in self.variables:
        if initializer is None:
            raise missing_initializer(name)
        made = copied(initial_value(initializer, spec, None, name), spec.dtype)
        made.requires_grad = trainable and spec.dtype.is_floating_point
        self.variables[name] = made
    if self.variables[name].spec != spec:
        raise CheckError(f"variable {name}: {self.variables[name].spec} is there", expected=str(spec),
                         got=str(self.variables[name].spec))
    return self.variables[name]
