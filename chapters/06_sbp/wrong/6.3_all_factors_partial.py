# signatures.sound
def _derived(op, specs, attrs):
    ins, outs = parse(op.equation(specs, attrs), len(specs))
    outs = outs[:len(op.outputs)]
    found = {}
    for letter in dict.fromkeys(c for t in outs + ins for c in t if c.islower()):
        left = [f"S{t.index(letter)}" if letter in t else "B" for t in ins]
        found[(*left, *[f"S{t.index(letter)}" if letter in t else f"P{op.fold}" for t in outs])] = None
    groups = [g for g in _partial_groups(op) if g[0] == "P"]
    if groups:
        partial = {i for _, inputs, _ in groups for i in inputs}
        found[(*["P" if n in partial else "B" for n in op.inputs[:len(ins)]], "P")] = None
    for signature in extra(op, specs, attrs):
        found[signature] = None
    found[whole(op, specs)] = None
    return found.keys()
