def _fewest_bytes(c, asked):
    return (sum(s != "B" for sbps in c.signature for s in sbps),)
