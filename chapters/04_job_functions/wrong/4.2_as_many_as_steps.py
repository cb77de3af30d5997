# plans.bound
def lower_bound(buffers, steps):
    change = [0] * (steps + 1)
    for b in buffers:
        if b.in_arena:
            change[b.first] += rounded(b.nbytes)
            change[b.last + 1] -= rounded(b.nbytes)
    best = now = 0
    for c in change:
        now += c
        best = max(best, now)
    return best
