def lower_bound(buffers, steps):
    events = []
    for b in buffers:
        if b.in_arena:
            events += [(b.first, 1, rounded(b.nbytes)), (b.last + 1, 0, -rounded(b.nbytes))]
    most = alive = 0
    for _, _, change in sorted(events):
        alive += change
        if alive > most:
            most = alive
    return most
