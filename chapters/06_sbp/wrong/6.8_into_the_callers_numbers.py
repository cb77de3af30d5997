# ranks.sums
def ring_all_reduce(x):
    rank, k = current().rank, current().size
    passing = x.clone()
    for _ in range(k - 1):
        comm.send(passing, (rank + 1) % k)
        passing = comm.recv((rank - 1) % k)
        x += passing
    return x
