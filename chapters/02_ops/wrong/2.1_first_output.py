# gradients.letters
def output_shapes(op, equation, specs):
    known = sizes(op, equation, specs)
    return [tuple(known[c] for c in parse(equation, len(specs))[1][0])]
