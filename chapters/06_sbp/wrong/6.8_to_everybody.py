# ranks.neighbours
def ring_all_reduce(x):
    rank, k = current().rank, current().size
    for other in range(k):
        if other != rank:
            comm.send(x, other)
    return x + sum(comm.recv(other) for other in range(k) if other != rank)
