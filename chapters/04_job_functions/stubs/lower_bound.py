def lower_bound(buffers, steps):
    return max((sum(rounded(b.nbytes) for b in buffers if b.in_arena and b.first <= t <= b.last)
                for t in range(steps + 1)),
               default=0)
