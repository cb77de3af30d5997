# ranks.sums
def ring_all_reduce(x):
    rank, k = current().rank, current().size
    n = x.numel() // k
    pieces = [x[i * n:(i + 1) * n] for i in range(k)]
    for summed in (True, False):
        for turn in range(k - 1):
            mine = rank - turn + (not summed)
            comm.send(pieces[mine % k], (rank + 1) % k)
            got = comm.recv((rank - 1) % k)
            pieces[(mine - 1) % k] = pieces[(mine - 1) % k] + got if summed else got
    return cat(pieces)
