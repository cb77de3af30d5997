# gradients.walk
def reverse(records, seeds, targets, visit=None):
    grads = {}

    def give(value, g):
        grads[id(value)] = g if id(value) not in grads else grads[id(value)] + g

    wanted = {id(t) for t in targets}
    on_the_way = []
    for call in records:
        if any(id(x) in wanted for x in call.inputs):
            on_the_way.append(call)
            wanted.update(id(y) for y in call.outputs)
    for value, g in seeds:
        grads[id(value)] = g
    for call in reversed(on_the_way):
        if not any(id(y) in grads for y in call.outputs):
            continue
        if visit is not None:
            call = visit(call) or call
        douts = [grads.get(id(y), None) for y in call.outputs]
        want = [id(x) in wanted for x in call.inputs]
        for x, g in zip(call.inputs, input_gradients(call, douts, want)):
            if g is not None:
                give(x, g)
    return [grads.get(id(t)) for t in targets]
