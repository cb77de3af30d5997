# signatures.complete
def _derived(op, specs, attrs):
    ins, outs = parse(op.equation(specs, attrs), len(specs))
    outs = outs[:len(op.outputs)]
    found = {}
    for letter in dict.fromkeys(c for t in outs + ins for c in t if c.islower()):
        left = [f"S{t.index(letter)}" if letter in t else "B" for t in ins]
        found[(*left, *[f"S{t.index(letter)}" if letter in t else f"P{op.fold}" for t in outs])] = None
    for signature in extra(op, specs, attrs):
        found[signature] = None
    found[whole(op, specs)] = None
    return found.keys()
