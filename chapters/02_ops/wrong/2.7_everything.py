# gradients.wanted
def reverse(records, seeds, targets, visit=None):
    grads = {}
    for v, g in seeds:
        _accumulate(grads, v, g)
    for call in reversed(records):
        douts = [grads.get(id(y)) for y in call.outputs]
        if any(d is not None for d in douts):
            source = visit(call) if visit is not None else None
            for x, dx in zip(call.inputs, input_gradients(source or call, douts, [True] * len(call.inputs))):
                if dx is not None:
                    _accumulate(grads, x, dx)
    return [grads.get(id(t)) for t in targets]
