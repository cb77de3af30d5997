# gradients.letters
def output_shapes(op, equation, specs):
    known = sizes(op, equation, specs)
    return [tuple(known.values()) for _ in parse(equation, len(specs))[1]]
