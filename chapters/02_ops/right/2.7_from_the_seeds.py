def reverse(records, seeds, targets, visit=None):
    """The last call that waits is taken first: a heap of their numbers."""
    import heapq
    wanted, makers = {id(t) for t in targets}, {}
    for number, call in enumerate(records):
        for y in call.outputs:
            makers[id(y)] = number
        if any(id(x) in wanted for x in call.inputs):
            wanted.update(id(y) for y in call.outputs)
    grads, waiting, seen = {}, [], set()

    def come(value, grad):
        if id(value) in grads:
            grads[id(value)] = grads[id(value)] + grad
            return
        grads[id(value)] = grad
        number = makers.get(id(value))
        if number is not None and number not in seen:
            seen.add(number)
            heapq.heappush(waiting, -number)

    for value, grad in seeds:
        come(value, grad)
    while waiting:
        call = records[-heapq.heappop(waiting)]
        asked = [id(x) in wanted for x in call.inputs]
        if not any(asked):
            continue
        other = visit(call) if visit else None
        found = input_gradients(call if other is None else other, [grads.get(id(y)) for y in call.outputs],
                                asked)
        for x, g in zip(call.inputs, found):
            if g is not None:
                come(x, g)
    return [grads.get(id(t)) for t in targets]
