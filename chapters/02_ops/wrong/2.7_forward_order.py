# gradients.walk
def reverse(records, seeds, targets, visit=None):
    grads = {}
    for v, g in seeds:
        _accumulate(grads, v, g)
    reached = {id(t) for t in targets}
    for call in records:
        if any(id(x) in reached for x in call.inputs):
            reached.update(id(y) for y in call.outputs)
    for call in records:
        douts = [grads.get(id(y)) for y in call.outputs]
        wanted = [id(x) in reached for x in call.inputs]
        if any(d is not None for d in douts) and any(wanted):
            if visit is not None:
                visit(call)
            for x, dx in zip(call.inputs, input_gradients(call, douts, wanted)):
                if dx is not None:
                    _accumulate(grads, x, dx)
    return [grads.get(id(t)) for t in targets]
