# plans.bound_fast
def lower_bound(buffers, steps):
    here = [b for b in buffers if b.in_arena]
    return max(sum(rounded(b.nbytes) for b in here if b.first <= t <= b.last) for t in range(steps + 1))
