# plans.bound
def lower_bound(buffers, steps):
    live = [0] * (steps + 2)
    for b in buffers:
        if b.first < b.last:
            live[b.first] += rounded(b.nbytes)
            live[b.last] -= rounded(b.nbytes)
    best = now = 0
    for change in live:
        now += change
        best = max(best, now)
    return best
