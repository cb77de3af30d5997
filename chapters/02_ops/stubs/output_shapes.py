def output_shapes(op, equation, specs):
    sizes(op, equation, specs)                     # raises ShapeError if a letter has two sizes
    inputs, outputs = parse(equation, len(specs))
    found = []
    for term in outputs:
        found.append(())
        for letter in term:
            for letters, spec in zip(inputs, specs):
                if letter in letters:
                    size = spec.shape[letters.index(letter)]
            found[-1] += (size,)
    return found
