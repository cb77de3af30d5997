def ring_all_reduce(x):
    rank, k = current().rank, current().size
    total = passing = x
    for _ in range(k - 1):
        comm.send(passing, (rank + 1) % k)
        passing = comm.recv((rank - 1) % k)
        total = total + passing
    return total
