# plans.no_overlap
def place(buffers):
    placed, end = [], 0
    for b in sorted(buffers, key=lambda b: -b.nbytes):
        at, need = 0, rounded(b.nbytes)
        for o in sorted((o for o in placed if o.first <= b.last and b.first <= o.last), key=lambda o: o.offset):
            if o.offset - at >= need:
                break
            at = max(at, o.offset + rounded(o.nbytes))
        b.offset = at
        placed.append(b)
        end = max(end, at + need)
    return end
