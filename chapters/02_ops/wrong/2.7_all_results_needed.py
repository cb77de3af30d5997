# gradients.walk
def reverse(records, seeds, targets, visit=None):
    reached = {id(t) for t in targets}
    for call in records:
        if any(id(x) in reached for x in call.inputs):
            reached.update(id(y) for y in call.outputs if y.dtype.is_floating_point)
    grads = {}

    def put(value, g):
        grads[id(value)] = grads[id(value)] + g if id(value) in grads else g

    for value, g in seeds:
        put(value, g)
    for call in reversed(records):
        douts = [grads.get(id(y)) for y in call.outputs]
        wanted = [id(x) in reached for x in call.inputs]
        if all(d is not None for d in douts) and any(wanted):
            told = visit(call) if visit else None
            for x, g in zip(call.inputs, input_gradients(told or call, douts, wanted)):
                if g is not None:
                    put(x, g)
    return [grads.get(id(t)) for t in targets]
