# plans.bound
def lower_bound(buffers, steps):
    live = [0] * (steps + 1)
    for b in buffers:
        live[b.first] += rounded(b.nbytes)
    return max(live)
