# signatures.sound
def _derived(op: Op, specs: tuple[Spec, ...], attrs: tuple) -> KeysView[Signature]:
    ins, outs = parse(op.equation(specs, attrs), len(specs))
    outs = outs[:len(op.outputs)]                            # an op without outputs: one empty term
    found: dict[Signature, None] = {}
    contracted = f"P{op.fold}"
    for letter in dict.fromkeys(c for t in outs + ins for c in t if c.islower()):
        left = [f"S{t.index(letter)}" if letter in t else "B" for t in ins]
        right = [f"S{t.index(letter)}" if letter in t else contracted for t in outs]
        found[(*left, *right)] = None
    for partial, inputs, outputs in _partial_groups(op):
        left = [partial if op.variadic or op.inputs[i] in inputs else "B" for i in range(len(ins))]
        right = [partial if n in outputs else "B" for n in op.outputs]
        if partial != "P" or _sums_kept(op, specs, attrs, left, right):
            found[(*left, *right)] = None
    for signature in extra(op, specs, attrs):
        found[signature] = None
    found = {whole(op, specs): None, **found}
    return found.keys()
