# ranks.sums
def ring_all_reduce(x):
    rank, k = current().rank, current().size
    pieces = [x[a:b] for a, b in bounds(x.numel(), k)]
    for turn in range(k - 1):
        comm.send(pieces[(rank - turn) % k], (rank + 1) % k)
        at = (rank - turn - 1) % k
        pieces[at] = pieces[at] + comm.recv((rank - 1) % k)
    return cat(pieces)
