# gradients.letters
def output_shapes(op, equation, specs):
    left, right = parse(equation, len(specs))
    known = {}
    for term, spec in zip(left, specs):
        for c, n in zip(term, spec.shape):
            known[c.lower()] = n
    return [tuple(known.get(c, 1) for c in term) for term in right]
