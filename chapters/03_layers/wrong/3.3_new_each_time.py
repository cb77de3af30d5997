# layers.variables
def get_variable(self, name, spec, initializer, trainable, regularizer=None, reuse=True, seed=None):
    from flowedu.core.eager.arrays import copied
    if initializer is None:
        raise missing_initializer(name)
    variable = self.variables[name] = copied(initial_value(initializer, spec, seed, name), spec.dtype)
    variable.requires_grad = trainable and spec.dtype.is_floating_point
    return variable
