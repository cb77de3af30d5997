# signatures.not_dearer
def _fewest_bytes(c, asked):
    return (c.number,)
