# plans.no_overlap
def place(buffers):
    placed, size = [], 0
    for b in sorted(buffers, key=lambda b: -b.nbytes):
        at = 0
        for o in sorted((o for o in placed if o.first < b.last and b.first < o.last), key=lambda o: o.offset):
            if at + rounded(b.nbytes) <= o.offset:
                break
            at = max(at, o.offset + rounded(o.nbytes))
        b.offset = at
        size = max(size, at + rounded(b.nbytes))
        placed.append(b)
    return size
