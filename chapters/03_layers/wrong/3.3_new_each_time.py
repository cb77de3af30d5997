# layers.variables
def get_variable(self, name, spec, initializer, trainable, regularizer=None, reuse=True, seed=None):
    from flowedu.core.eager.arrays import copied
    if initializer is None:
        raise missing_initializer(name)
    found = self.variables[name] = copied(initial_value(initializer, spec, seed, name), spec.dtype)
    found.requires_grad = trainable and spec.dtype.is_floating_point
    return found
