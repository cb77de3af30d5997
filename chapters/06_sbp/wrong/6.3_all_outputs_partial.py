# signatures.sound
def _derived(op, specs, attrs):
    ins, outs = parse(op.equation(specs, attrs), len(specs))
    outs = outs[:len(op.outputs)]
    found = {}
    for letter in dict.fromkeys(c for t in outs + ins for c in t if c.islower()):
        left = [f"S{t.index(letter)}" if letter in t else "B" for t in ins]
        found[(*left, *[f"S{t.index(letter)}" if letter in t else f"P{op.fold}" for t in outs])] = None
    for partial, inputs, outputs in _partial_groups(op):
        left = [partial if op.variadic or n in inputs else "B" for n in (op.inputs * len(ins))[:len(ins)]]
        right = [partial for n in op.outputs]
        if partial != "P" or _sums_kept(op, specs, attrs, left, right):
            found[(*left, *right)] = None
    for signature in extra(op, specs, attrs):
        found[signature] = None
    found[whole(op, specs)] = None
    return found.keys()
