def output_shapes(op, equation, specs):
    left, right = parse(equation, len(specs))
    known = sizes(op, equation, specs)
    shapes = []
    for term in right:
        shape = ()
        for letter in term:
            shape += (known[letter],)
        shapes.append(shape)
    return shapes
