# ranks.sums
def ring_all_reduce(x):
    rank, k = current().rank, current().size
    total = passing = x
    for _ in range(k - 1):
        got = comm.recv((rank - 1) % k)
        comm.send(passing, (rank + 1) % k)
        passing = got
        total = total + passing
    return total
